"""Damage each file of ``data_dir`` in turn: it is named, never a crash, and what is answered is never made up."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from lab.campaigns.processes import EndedProcess, command
from lab.campaigns.report import Order, Tally
from lab.campaigns.workspace import Workspace

QUERY = ("query", "the limit of anchor", "--json")
SYNC = ("sync", "--confirm-deletes", "--json")
# What meets the files of a folder.
COMMANDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "domains": (("status", "--json"), QUERY, SYNC),
    "ledger": (("conflicts", "--json"), QUERY, SYNC),
    "evaluations": (("evaluations", "--json"), ("eval", "--json")),
    "feedback": (QUERY,),
    "dagster": (("status", "--json"), SYNC),
}
_PAGE = 4096


def damage_files(order: Order) -> Tally:
    """Damage a file ``order.runs`` times, each time in a fresh copy of an installation, and use what reads it."""
    tally, chance = Tally("damaged files"), random.Random(order.seed)
    workspace = Workspace(order.folder / "workspace", order.folder / "var", order.seed)
    pristine = order.folder / "pristine"
    _fill(workspace, order, tally)
    shutil.move(workspace.data_dir, pristine)
    files = [file for file in sorted(pristine.rglob("*")) if _is_used(file, pristine)]
    chance.shuffle(files)
    texts = workspace.texts()
    for run in range(order.runs):
        shutil.rmtree(workspace.data_dir, ignore_errors=True)
        shutil.copytree(pristine, workspace.data_dir)
        name = files[run % len(files)].relative_to(pristine)
        kind = chance.choice(sorted(KINDS))
        KINDS[kind](workspace.data_dir / name, chance)
        tally.runs["damaged files"] += 1
        for arguments in COMMANDS[name.parts[0]]:
            ended = command(order.folder / "command.txt", workspace.config, *arguments).wait()
            trouble = _judge(tally, ended, name)
            if arguments is QUERY and ended.code == 0:
                trouble = trouble or _made_up(ended, texts)
            if trouble:
                tally.trouble.append(f"{kind} {name}, {arguments[0]}: {trouble}: {ended.cause}")
    tally.notes.append(f"{len(files)} files, of {', '.join(COMMANDS)}")
    return tally


def _judge(tally: Tally, ended: EndedProcess, name: Path) -> str:
    """Count how a command ended; return what must not be."""
    if ended.defect:
        return ended.defect
    if ended.code == 0:
        tally.outcomes["commands that did their work"] += 1
    elif name.name in ended.said or name.parent.name in ended.said:
        tally.outcomes["errors that name the file"] += 1
    else:
        return f"an error ({ended.code}) that does not name the file"
    return ""


def _made_up(ended: EndedProcess, texts: set[str]) -> str:
    answer = json.loads(next(line for line in ended.said.splitlines() if line.startswith("{")))
    wrong = [item for item in answer["items"] if not any(item["content"] in text for text in texts)]
    return f"{len(wrong)} items that no document ever said" if wrong else ""


def _fill(workspace: Workspace, order: Order, tally: Tally) -> None:
    """Make an installation that has a file of every kind."""
    for version in (0, 1):
        workspace.write(version)
        for arguments in (SYNC, QUERY):
            ended = command(order.folder / "command.txt", workspace.config, *arguments).wait()
            tally.ended_well(f"{arguments[0]} of the whole installation", ended)
    ended = command(order.folder / "command.txt", workspace.config, "eval", "--json").wait()
    if ended.code != 0:
        tally.notes.append(f"eval of the whole installation {ended.cause}")
    workspace.write(2)  # so that a sync has work to do


def _is_used(file: Path, data_dir: Path) -> bool:
    """Tell whether a file says anything to a program; locks and logs only say something to people."""
    if not file.is_file() or not file.stat().st_size or file.name.endswith((".lock", "LOCK", ".log")):
        return False
    return file.relative_to(data_dir).parts[0] in COMMANDS


def _flip(file: Path, chance: random.Random) -> None:
    with file.open("r+b") as stream:
        place = chance.randrange(file.stat().st_size)
        stream.seek(place)
        byte = stream.read(1)[0]
        stream.seek(place)
        stream.write(bytes([byte ^ 1 << chance.randrange(8)]))


def _overwrite(file: Path, page: Callable[[int], bytes], chance: random.Random) -> None:
    size = file.stat().st_size
    place = chance.randrange(size) // _PAGE * _PAGE
    with file.open("r+b") as stream:
        stream.seek(place)
        stream.write(page(min(_PAGE, size - place)))


KINDS: Mapping[str, Callable[[Path, random.Random], None]] = {
    "one bit of": _flip,
    "a page of zeros in": lambda file, chance: _overwrite(file, bytes, chance),
    "a page of noise in": lambda file, chance: _overwrite(file, chance.randbytes, chance),
    "the end cut off": lambda file, chance: os.truncate(file, chance.randrange(file.stat().st_size)),
    "nothing left in": lambda file, _chance: os.truncate(file, 0),
}
