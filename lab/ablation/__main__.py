"""``python -m lab.ablation``: print what labelled pairs and judged sets lose without each part of the code."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from evals.code_version import code_version
from lab import duplicates
from lab.ablation.measuring import Row, conflict_row, duplicate_row, feature_rows, without
from lab.ablation.retrieval import retrieval_table
from lab.ablation.targets import DUPLICATE_RULES, EXTRACTORS
from lab.conflicts.pairs import OWN, SHARED, Pair, judge, load_pairs
from lab.conflicts.shares import Figures

OTHERS = "others"
"""The set of pairs from other repositories."""
FEW = 3
"""An extractor that finds fewer pairs of other repositories does not earn its lines."""


def main(
    shared: Annotated[Path | None, typer.Option(help="Folder of judged sets and pairs from elsewhere.")] = None,
    written: Annotated[Path | None, typer.Option("--json", help="Write the figures of the pairs here as well.")] = None,
    retrieval: Annotated[bool, typer.Option(help="Expansion, heuristics and plans instead, on judged sets.")] = False,
    queries: Annotated[int | None, typer.Option(help="With --retrieval: at most so many of each set.", min=1)] = None,
    keep: Annotated[Path | None, typer.Option(help="Folder for the indexes; their vectors are used again.")] = None,
) -> None:
    """Print what is lost without each extractor, feature of the conflict model and rule of duplicates, as Markdown."""
    if retrieval:
        with tempfile.TemporaryDirectory(prefix="nornweave-ablation-") as folder:
            lines = retrieval_table(
                shared, keep or Path(folder), lambda told: typer.echo(told, err=True), queries=queries
            )
            typer.echo("\n".join(["### Retrieval", "", *lines]))
        return
    pairs = pair_sets(shared)
    extractors = list(extractor_rows(pairs))
    features = feature_rows({name: list(judge(each)) for name, each in pairs.items()})
    parts = {"Extractors": extractors, "Features": [extractors[0], *features], "Duplicates": list(duplicate_rows())}
    if written:
        record: dict[str, object] = {"code": code_version(), "at": datetime.now(UTC).isoformat(timespec="seconds")}
        for part, rows in parts.items():
            record[part] = {row.name: {name: one.as_json() for name, one in row.sets.items()} for row in rows}
        written.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for part, rows in parts.items():
        typer.echo("\n".join([f"### {part}", "", *table(rows), ""]))


def pair_sets(shared: Path | None) -> dict[str, list[Pair]]:
    """Return the pairs of other repositories, if there are any, and the repository's own by split."""
    sets = {OTHERS: list(load_pairs(shared / SHARED))} if shared else {}
    for pair in sorted(load_pairs(OWN), key=lambda pair: pair.kind):
        sets.setdefault(f"own {pair.kind}", []).append(pair)
    return sets


def extractor_rows(pairs: dict[str, list[Pair]]) -> Iterator[Row]:
    """Yield the row of everything, of each extractor, and of all together that bring nothing or little."""

    def row(name: str, removed: Iterable[str]) -> Row:
        typer.echo(f"without {name}", err=True)
        with ExitStack() as stack:
            for each in removed:
                stack.enter_context(without(EXTRACTORS[each]))
            return conflict_row(name, {part: list(judge(each)) for part, each in pairs.items()})

    yield (whole := row("nothing removed", ()))
    yield from (rows := [row(name, [name]) for name in EXTRACTORS])
    nothing = [one.name for one in rows if one.sets == whole.sets]
    yield row(f"*all {len(nothing)} that bring nothing*", nothing)
    if OTHERS in pairs:
        few = [one.name for one in rows if brings(whole, one)[0] < FEW]
        yield row(f"*all {len(few)} that bring fewer than {FEW} of {OTHERS}*", few)


def duplicate_rows() -> Iterator[Row]:
    """Yield the row of everything and of each rule, by words and vectors."""
    pairs = duplicates.read_pairs()
    vectors = duplicates.embed(pairs)
    yield duplicate_row("nothing removed", pairs, vectors)
    for name, target in DUPLICATE_RULES.items():
        typer.echo(f"without {name}", err=True)
        with without(target):
            yield duplicate_row(name, pairs, vectors)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table, what brings most first; ``=`` where a set measures the same as with everything.

    ``facts`` are those that are not read any more, or are read differently.
    """
    whole, *others = rows
    yield f"| without | brings | facts | {' | '.join(whole.sets)} |"
    yield f"|---|---|---:|{'---|' * len(whole.sets)}"
    yield f"| {whole.name} | | {len(whole.facts) or ''} | {' | '.join(map(_shown, whole.sets.values()))} |"
    for row in sorted(others, key=lambda row: (*(-number for number in brings(whole, row)), row.name)):
        cells = ("=" if one == whole.sets[name] else _shown(one) for name, one in row.sets.items())
        yield f"| {row.name} | {_said(whole, row)} | {_changed(whole, row)} | {' | '.join(cells)} |"


def brings(whole: Row, row: Row) -> tuple[int, int, int]:
    """Return what a part brings: pairs of other repositories, own pairs, false alarms that it prevents."""
    lost = {name: whole.sets[name].recall.hits - row.sets[name].recall.hits for name in whole.sets}
    others = lost.pop(OTHERS, 0)
    return others, sum(lost.values()), _false_alarms(row) - _false_alarms(whole)


def _false_alarms(row: Row) -> int:
    return sum(one.precision.of - one.precision.hits for one in row.sets.values())


def _changed(whole: Row, row: Row) -> str:
    return str(len(whole.facts - row.facts)) if row.name in EXTRACTORS or row.facts != whole.facts else ""


def _said(whole: Row, row: Row) -> str:
    if row.sets == whole.sets:
        return "**nothing**"
    named = zip(brings(whole, row), (OTHERS, "own", "false alarms prevented"), strict=True)
    return ", ".join(f"{what} {number:+d}" for number, what in named if number)


def _shown(one: Figures) -> str:
    return f"{one.recall.hits}: {one.precision.value:.2f}, {one.recall.value:.2f}"


if __name__ == "__main__":
    typer.run(main)
