"""``python -m lab.access``: what is hidden and shown, and what is hidden and was not meant to be."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from lab.access.grammar import spellings as generated
from lab.access.probing import OUTSIDERS, probe
from lab.access.rights import campaign
from lab.access.serving import Outcome, as_somebody, publish, served, write_workspace
from nornweave.core.errors import DocumentError
from nornweave.core.text.decode import decode
from nornweave.read.access_statements import access_statements
from nornweave.read.front_matter import FORMATS

app = typer.Typer(add_completion=False, help=__doc__)
_A_REQUEST, _OPEN = 100, 9
_SOURCES = [{"id": "docs", "domain": "documentation", "type": "files", "path": "docs"}]


@app.command()
def spellings(count: int = 2_500, seed: int = 1) -> None:
    """Sync documents that state groups in as many spellings, and look for each over HTTP; exit 1 if one is shown."""
    with tempfile.TemporaryDirectory(prefix="nornweave-spellings-") as folder:
        outcome = asyncio.run(_look_for_spellings(Path(folder), count, seed))
    _print(outcome)


async def _look_for_spellings(folder: Path, count: int, seed: int) -> Outcome:
    kinds = {f"{number:05}{each.suffix}": each for number, each in enumerate(generated(count, seed))}
    documents = {f"docs/{path}": f"{each.text}\nword{path[:5]}x\n" for path, each in kinds.items()}
    documents |= {f"docs/open-{number}.md": f"# Open\n\nword{number}x\n" for number in range(_OPEN)}
    settings = write_workspace(folder, documents, _SOURCES, {**OUTSIDERS, "nw_board": ["board"]})
    outcome = Outcome({"documents": count, "of them without a text": publish(settings)})
    async with served(settings) as application:
        for somebody in (*OUTSIDERS, "nw_board"):
            async with as_somebody(application, somebody) as client:
                for hundred in range(0, count, _A_REQUEST):
                    asked = {"regex": rf"word{hundred // _A_REQUEST:03}\d\dx", "limit": str(_A_REQUEST)}
                    found = [match["source_path"] for match in await _matches(client, asked)]
                    for path in found:
                        outcome.count(f"{kinds[path].kind}, found by {somebody}")
                    if somebody in OUTSIDERS:
                        outcome.shown += [f"{path} to {somebody}: {kinds[path].text[:200]!r}" for path in found]
                opened = await _matches(client, {"regex": r"word\dx"})
                if len(opened) != _OPEN:
                    outcome.shown.append(f"{len(opened)} of {_OPEN} open documents to {somebody}: this proves nothing")
    return outcome


async def _matches(client: httpx.AsyncClient, asked: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return all lines that match; on a busy machine the time may be up before."""
    while True:
        answer = await client.get("/find", params=asked)
        if answer.is_success and not answer.json()["truncated"]:
            return list(answer.json()["matches"])
        await asyncio.sleep(1)


@app.command()
def probes(count: int = 100_000, seed: int = 1) -> None:
    """Ask as outsiders for hidden documents in every way there is; exit 1 if an answer shows something of one."""
    with tempfile.TemporaryDirectory(prefix="nornweave-probes-") as folder:
        outcome = probe(Path(folder), count, seed)
    _print(outcome)


@app.command()
def rights(count: int = 100_000, seed: int = 1) -> None:
    """Compare what every route shows with what services allow by their own state; exit 1 where they differ."""
    with tempfile.TemporaryDirectory(prefix="nornweave-rights-") as folder:
        outcome = campaign(Path(folder), count, seed)
    _print(outcome)


@app.command()
def ordinary(
    folders: Annotated[list[Path], typer.Argument(help="Folders of documents that are for everybody.")],
) -> None:
    """Count the ordinary documents below folders that are hidden, and say why each is."""
    documents, hidden = 0, Counter[str]()
    for file, text in _texts(folders):
        documents += 1
        stated, notice = access_statements(text, FORMATS[file.suffix.lower()])
        if stated:
            hidden[f"{file}: {notice or f'states {stated}'}"] += 1
    typer.echo("\n".join((*hidden, f"{documents:,} documents, {len(hidden)} hidden")))


def _texts(folders: list[Path]) -> Iterator[tuple[Path, str]]:
    for file in (file for folder in folders for file in sorted(folder.rglob("*"))):
        if file.suffix and file.suffix.lower() in FORMATS and file.is_file():
            try:
                yield file, decode(file.read_bytes())
            except DocumentError:
                continue  # empty or binary


def _print(outcome: Outcome) -> None:
    typer.echo("\n".join(f"{number:>9,}  {name}" for name, number in sorted(outcome.tried.items())))
    typer.echo(f"{sum(outcome.tried.values()):>9,}  in all, {len(outcome.shown)} shown")
    typer.echo("\n".join(outcome.shown[:50]))
    sys.exit(1 if outcome.shown else 0)


if __name__ == "__main__":
    app()
