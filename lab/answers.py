"""``python -m lab.answers FOLDER QUESTIONS``: is the passage found that holds the answer, and is its place named.

For judging how files are read: two readers cut a file differently, so the judgments name texts and not places. A line
of QUESTIONS is ``{"id", "text", "path", "answer": [texts that one passage must hold], "with": [what it must hold to be
understood: the header of a row], "page": 3, "section": "part of the cited section"}``; the last three may be missing.
``path`` may have a further suffix in FOLDER (``a.docx.md`` for ``a.docx``): another reader's output is measured with
the same questions.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lab.bench.fusing import synced
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.config import load_settings
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import Domain, present

DEPTH = 10
_MARKUP = re.compile(r"[\\*_`|]|</?[a-z]+>")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Found:
    """Ranks, from 1, of the first passage that holds the answer, and that holds it with its context; 0 for none.

    Attributes:
        is_placed: the citation of the first names the place; ``None`` if the question names none.
    """

    path: str
    rank: int
    rank_with: int
    is_placed: bool | None


def main(
    folder: Annotated[Path, typer.Argument(help="The files.", exists=True, file_okay=False)],
    questions: Annotated[Path, typer.Argument(help="One question a line, JSON.", exists=True, dir_okay=False)],
    domain: Annotated[Domain, typer.Option(help="The domain that reads the files.")] = Domain.DOCUMENTATION,
    work: Annotated[Path | None, typer.Option(help="Keep the index here.")] = None,
    misses: Annotated[bool, typer.Option(help="Name the questions without an answer in the first ten.")] = False,
) -> None:
    """Index the files, ask the questions, and print Recall@10 and MRR by format."""
    asked = [json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines() if line.strip()]
    with tempfile.TemporaryDirectory() as temporary:
        found = measure(folder, asked, domain, work or Path(temporary))
    console = Console(width=120)
    console.print(_table(found))
    if misses:
        missed = (one["id"] for one, result in zip(asked, found, strict=True) if not result.rank)
        console.print("without an answer:", ", ".join(missed))


def measure(folder: Path, asked: Sequence[Mapping[str, Any]], domain: Domain, work: Path) -> list[Found]:
    """Index a folder as the one source of a domain and ask each question there."""
    source = {"id": "files", "domain": domain.value, "type": "files", "path": str(folder.resolve())}
    config = synced(work, [source], stdout=2)
    with Engine(load_settings(config), [domain]) as engine:
        return [_asked(engine, one, domain) for one in asked]


def _asked(engine: Engine, one: Mapping[str, Any], domain: Domain) -> Found:
    question = Question(text=one["text"], now=present(), viewer=OPERATOR, domains=(domain,), top_k=DEPTH)
    items = [item for response in engine.recall(question) for item in response.items][:DEPTH]
    own = [(rank, item) for rank, item in enumerate(items, 1) if _is_of(item.citation.source_path, one["path"])]
    hits = [(rank, item) for rank, item in own if _holds(item.content, one["answer"])]
    full = [rank for rank, item in hits if _holds(item.content, one.get("with", ()))]
    placed = _is_placed(hits[0][1].citation, one) if hits and ("page" in one or "section" in one) else None
    return Found(one["path"], hits[0][0] if hits else 0, full[0] if full else 0, placed)


def _is_of(source_path: str, path: str) -> bool:
    return source_path == path or source_path.startswith(f"{path}.")


def _holds(content: str, texts: Iterable[str]) -> bool:
    plain = _plain(content)
    return all(_plain(text) in plain for text in texts)


def _plain(text: str) -> str:
    return _SPACE.sub(" ", _MARKUP.sub(" ", text)).strip().casefold()


def _is_placed(citation: Any, one: Mapping[str, Any]) -> bool:
    is_page = "page" not in one or citation.page == one["page"]
    return is_page and _plain(one.get("section", "")) in _plain(citation.section or "")


def _table(found: Sequence[Found]) -> Table:
    table = Table(title=f"passages that hold the answer, of the first {DEPTH}")
    for column in ("format", "questions", "Recall@10", "MRR", "with context: Recall@10", "MRR ", "place named"):
        table.add_column(column, justify="left" if column == "format" else "right")
    formats = sorted({PurePosixPath(one.path).suffix for one in found})
    for name in formats:
        _add(table, name, [one for one in found if PurePosixPath(one.path).suffix == name])
    _add(table, "all", found)
    return table


def _add(table: Table, name: str, found: Sequence[Found]) -> None:
    ranks, full = [one.rank for one in found], [one.rank_with for one in found]
    placed = [one.is_placed for one in found if one.is_placed is not None]
    place = f"{sum(placed)} of {len(placed)}" if placed else "-"
    figures = (_share(ranks), _mean_reciprocal(ranks), _share(full), _mean_reciprocal(full))
    table.add_row(name, str(len(found)), *(f"{figure:.3f}" for figure in figures), place)


def _share(ranks: Sequence[int]) -> float:
    return sum(rank > 0 for rank in ranks) / max(1, len(ranks))


def _mean_reciprocal(ranks: Sequence[int]) -> float:
    return fsum(1 / rank for rank in ranks if rank) / max(1, len(ranks))


if __name__ == "__main__":
    typer.run(main)
