"""Fill the disk at any moment of a sync: it says so, what is published stays, and with room the next sync ends well."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.campaigns.processes import command
from lab.campaigns.report import Order, Tally
from lab.campaigns.workspace import References, Workspace, between, differences, disorder, published_state

_ROOMY = 1 << 30
_PAGE = 4096
FULL = ("no space left", " is full", "disk full", "file too large", "not enough space", "out of disk")


def fill_disks(order: Order) -> Tally:
    """Sync ``order.runs`` times with a little more room each time, from none to enough.

    The room is that of a file system in memory; where none may be mounted, the largest size of a file is limited
    instead, which fails writes as well, but not all of them.
    """
    tally, chance = Tally("disk full"), random.Random(order.seed)
    expected = References(order.folder / "reference", order.seed)
    disk = order.folder / "disk"
    disk.mkdir()
    pristine = order.folder / "pristine"
    workspace = Workspace(order.folder / "workspace", disk / "var", order.seed)
    workspace.write(0)
    _sync(workspace, order, tally, "the first sync")
    shutil.move(workspace.data_dir, pristine)
    before = _size(pristine)
    with _disk(disk, _ROOMY):
        shutil.copytree(pristine, workspace.data_dir)
        workspace.write(1)
        _sync(workspace, order, tally, "the second sync")
        needed, largest = _size(disk) - before, max(file.stat().st_size for file in disk.rglob("*"))
        if not disk.is_mount():
            shutil.rmtree(workspace.data_dir)
    for run in range(order.runs):
        share = (run + chance.random()) / order.runs
        name = f"run {run + 1} (room {share:.2f})"
        with _disk(disk, before + int(1.2 * share * needed)) as is_mounted:
            shutil.copytree(pristine, workspace.data_dir)
            limit = None if is_mounted else int(share * largest)
            _sync_without_room(workspace, order, tally, name, limit)
            tally.trouble += [f"{name}: {one}" for one in between(workspace.settings, [expected[0], expected[1]])]
            if is_mounted:
                subprocess.run(["mount", "-o", f"remount,size={_ROOMY}", disk], check=True)
            _sync(workspace, order, tally, f"after {name}")
            trouble = [*differences(published_state(workspace.settings), expected[1]), *disorder(workspace.settings)]
            tally.trouble += [f"after {name}: {one}" for one in trouble]
            tally.outcomes["times equal to a first sync with room"] += not trouble
            if not is_mounted:
                shutil.rmtree(workspace.data_dir)
    return tally


def _sync_without_room(workspace: Workspace, order: Order, tally: Tally, name: str, limit: int | None) -> None:
    """Sync on a full disk, or with a limit for the size of files: it works or says that the disk is full."""
    ended = command(order.folder / "sync.txt", workspace.config, "sync", "--json", largest_file=limit).wait()
    tally.runs["syncs on a disk that fills up" if limit is None else "syncs with a limit for files"] += 1
    if ended.code == 0:
        tally.outcomes["had room enough"] += 1
    elif ended.code == 1 and not ended.defect and any(sign in ended.said.lower() for sign in FULL):
        tally.outcomes["said that the disk is full"] += 1
    else:
        tally.trouble.append(f"{name}: sync {ended.cause}")


def _sync(workspace: Workspace, order: Order, tally: Tally, name: str) -> None:
    ended = command(order.folder / "sync.txt", workspace.config, "sync", "--json").wait()
    tally.ended_well(f"{name}: sync", ended)


@contextmanager
def _disk(folder: Path, size: int) -> Iterator[bool]:
    """Mount a file system of a size in bytes where that is allowed; yield whether it is."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", folder], check=True)


def _size(folder: Path) -> int:
    """Return what the files of a folder take, in whole pages."""
    return sum(-(-one.stat().st_size // _PAGE) * _PAGE if one.is_file() else _PAGE for one in folder.rglob("*"))
