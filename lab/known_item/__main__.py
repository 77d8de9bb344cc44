"""``python -m lab.known_item FOLDER…``: how often the place of a known item comes first, and among ten."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from lab.bench.fusing import synced
from lab.known_item.drawing import SEED, KnownItem, known_items
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Citation
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR
from nornweave.core.types import present

TOP_K = 10


def main(
    folders: Annotated[list[Path], typer.Argument(help="Repositories to draw from and to search.", exists=True)],
    keep: Annotated[Path | None, typer.Option(help="Folder for the indexes; their vectors are used again.")] = None,
    seed: Annotated[int, typer.Option(help="What is drawn depends on it.")] = SEED,
    as_json: Annotated[bool, typer.Option("--json", help="Print every query with the rank of its place.")] = False,
) -> None:
    """Ask for known items of repositories, all domains at once, and print first / in ten for each kind."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="nornweave-known-item-") as temporary:
        for folder in folders:
            rows += _asked(folder.resolve(), (keep or Path(temporary)).resolve(), seed)
            typer.echo(f"{folder.name}: asked", err=True)
    if as_json:
        typer.echo(json.dumps({"seed": seed, "top_k": TOP_K, "shares": _shares(rows), "queries": rows}, indent=1))
    else:
        typer.echo("\n".join(_table(rows, [folder.name for folder in folders])))


def _asked(folder: Path, keep: Path, seed: int) -> Iterator[dict[str, Any]]:
    sources = [
        {"id": domain, "domain": domain, "type": "files", "path": str(folder)} for domain in ("code", "documentation")
    ]
    config = synced(keep / folder.name, sources, stdout=2)
    with Engine(load_settings(config), watch=False) as engine:
        answers = engine.as_seen_by(OPERATOR).answers
        for known in known_items(folder, seed):
            items = answers.answer(Question(text=known.query, now=present(), viewer=OPERATOR, top_k=TOP_K)).items
            hits = [place for place, fused in enumerate(items, 1) if _covers(fused.citation, known)]
            yield {
                "repository": folder.name,
                "kind": known.kind,
                "query": known.query,
                "place": f"{known.path}:{known.lines[0]}",
                "rank": hits[0] if hits else None,
            }


def _covers(citation: Citation, known: KnownItem) -> bool:
    first, last = citation.line_range or (0, -1)
    return citation.source_path == known.path and any(first <= line <= last for line in known.lines)


def _shares(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, float]]:
    ranks: dict[str, list[int | None]] = defaultdict(list)
    for row in rows:
        ranks[row["kind"]].append(row["rank"])
    return {
        kind: {
            "queries": len(each),
            "first": round(sum(rank == 1 for rank in each) / len(each), 4),
            "in_ten": round(sum(rank is not None for rank in each) / len(each), 4),
        }
        for kind, each in ranks.items()
    }


def _table(rows: list[dict[str, Any]], names: list[str]) -> Iterator[str]:
    whole = _shares(rows)
    parts = {name: _shares([row for row in rows if row["repository"] == name]) for name in names}
    yield f"| typed | queries | all: first / in ten | {' | '.join(names)} |"
    yield f"|---|---:|---|{'---|' * len(names)}"
    for kind, share in whole.items():
        cells = [_cell(parts[name].get(kind)) for name in names]
        yield f"| {kind} | {share['queries']} | {_cell(share)} | {' | '.join(cells)} |"


def _cell(share: dict[str, float] | None) -> str:
    return f"{share['first']:.2f} / {share['in_ten']:.3f}" if share else "–"


if __name__ == "__main__":
    typer.run(main)
