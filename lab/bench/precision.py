"""What int8 costs in quality: dense retrieval alone over the judged sets, ``python -m lab.bench --only precision``.

Every document is one vector (of its first 254 tokens), every message one: no chunking, no fusion, nothing but vectors.
All judged documents are searched, and so many others, chosen by a seed. Four combinations, since documents and queries
may have different precisions.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
from rich.console import Console
from rich.table import Table

from evals.judged_files import read_judgments
from evals.judgments import JudgedSet
from evals.measures import measure
from nornweave.models.encoders import Encoder, Vectors, load_encoder
from nornweave.models.encoders.precision import Wanted
from nornweave.models.folders import MINILM

SETS = ("research-scifact", "code-cosqa", "documentation-awsdocs", "conversations-locomo")
OTHERS = 1_500
"""Documents beside the judged ones."""
MOST_QUERIES = 500
MEASURES = ("nDCG@10", "Recall@10")
DEPTH = 10


@dataclass(frozen=True, slots=True)
class PrecisionCorpus:
    """What a judged set is searched in.

    Attributes:
        groups: per text what a query's channel filter compares with; empty where nothing is filtered.
    """

    places: Sequence[str]
    texts: Sequence[str]
    groups: Sequence[str]


def print_precision(shared: Path, cache: Path, others: int = OTHERS) -> None:
    """Print a table per judged set that is there."""
    console = Console(width=120)
    encoders = {name: load_encoder(MINILM, cache_dir=cache, precision=name) for name in get_args(Wanted)[1:]}
    for name in SETS:
        if not (shared / name).is_dir():
            console.print(f"precision: no judged set {name} in {shared}")
            continue
        judged = read_judgments(shared / name)
        corpus = _messages(shared / name) if "locomo" in name else _documents(shared / name, judged, others)
        console.print(_table(name, judged, corpus, encoders))


def _documents(folder: Path, judged: JudgedSet, others: int) -> PrecisionCorpus:
    native = folder / "native"
    wanted = {one.path for judgments in judged.relevant.values() for one in judgments}
    paths = sorted(file.relative_to(native).as_posix() for file in native.rglob("*") if file.is_file())
    rest = [path for path in paths if path not in wanted]
    chosen = sorted([*wanted.intersection(paths), *random.Random(15).sample(rest, min(others, len(rest)))])
    texts = [(native / path).read_text(encoding="utf-8", errors="replace") for path in chosen]
    return PrecisionCorpus([f"{path}#" for path in chosen], texts, [""] * len(chosen))


def _messages(folder: Path) -> PrecisionCorpus:
    native = folder / "native"
    said = [
        (f"{file.relative_to(native).as_posix()}#{message['ts']}", message["text"], f"#{file.parent.name}")
        for file in sorted(native.glob("*/*.json"))
        for message in json.loads(file.read_text(encoding="utf-8"))
        if message.get("text")
    ]
    return PrecisionCorpus(*zip(*said, strict=True))


def _table(name: str, judged: JudgedSet, corpus: PrecisionCorpus, encoders: Mapping[str, Encoder]) -> Table:
    relevant = judged.relevant
    queries = [query for query in judged.queries if query.id in relevant][:MOST_QUERIES]
    table = Table(
        "documents",
        "queries",
        *MEASURES,
        "difference",
        title=f"{name}: {len(corpus.texts)} texts, {len(queries)} queries",
    )
    passages = {kind: encoder.encode(corpus.texts) for kind, encoder in encoders.items()}
    asked = {kind: encoder.encode([query.text for query in queries]) for kind, encoder in encoders.items()}
    grades = {query.id: {one.key: one.grade for one in relevant[query.id]} for query in queries}
    channels = [str(dict(query.filters).get("channel", "")) for query in queries]
    first: float | None = None
    for documents, texts in passages.items():
        for kind, vectors in asked.items():
            found = _rankings(corpus, texts, vectors, channels)
            rankings = {
                query.id: tuple((place,) if place in grades[query.id] else () for place in places)
                for query, places in zip(queries, found, strict=True)
            }
            measured = measure(rankings, grades, MEASURES)
            means = [measured[one].mean for one in MEASURES]
            first = means[0] if first is None else first
            table.add_row(documents, kind, *(f"{mean:.4f}" for mean in means), f"{means[0] - first:+.4f}")
    return table


def _rankings(corpus: PrecisionCorpus, passages: Vectors, queries: Vectors, channels: Sequence[str]) -> list[list[str]]:
    groups = np.array(corpus.groups)
    found = []
    for vector, channel in zip(queries, channels, strict=True):
        scores = passages @ vector
        if channel:
            scores[groups != channel] = -2
        found.append([corpus.places[at] for at in np.argsort(-scores, kind="stable")[:DEPTH]])
    return found
