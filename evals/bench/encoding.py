"""How fast chunks are encoded, against ``SentenceTransformer.encode``: ``python -m evals.bench --only encoding``.

Both encode the same chunks in the same run, in turns, since the speed of a shared machine drifts by a factor of two
within minutes: the ratio is the result, chunks per second are not. Targets: ratio ≥ 3.5, cosine ≥ .999.
"""

from __future__ import annotations

import statistics
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from nornweave.chunking.spans import Tokenizer
from nornweave.embedding import Encoder, Vectors, load_encoder
from nornweave.embedding.models import MINILM, locate

CHUNK_TOKENS = 238
CHUNKS_PER_FILE = 4
"""At most: a few long files would make the texts too much alike."""
TEXTS = ("*.py", "*.md", "*.rst", "*.txt")
QUERIES = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run measured; speeds are medians over the rounds, in chunks per second."""

    chunks: int
    original: float
    ours: float
    ratio: float
    min_cosine: float
    mean_cosine: float
    query_p50: float
    query_p95: float


def texts_under(folders: list[Path], tokenizer: Tokenizer, count: int) -> list[str]:
    """Cut ``count`` chunks of 238 tokens out of the text files in ``folders``, folder after folder."""
    chunks = (chunk for folder in folders for path in _files(folder) for chunk in _chunks(path, tokenizer))
    return list(islice(chunks, count))


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for pattern in TEXTS
        for path in folder.rglob(pattern)
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def _chunks(path: Path, tokenizer: Tokenizer) -> Iterator[str]:
    text = path.read_text(encoding="utf-8", errors="replace")[:100_000]
    starts = [*tokenizer.token_starts(text), len(text)]
    ends = starts[CHUNK_TOKENS::CHUNK_TOKENS][:CHUNKS_PER_FILE]
    return (text[start:end] for start, end in zip(starts[::CHUNK_TOKENS], ends, strict=False))


def measure(encoder: Encoder, original: Any, chunks: list[str], rounds: int) -> Outcome:
    """Encode with both, in turns, ``rounds`` times after one warm-up each."""
    runs: dict[str, Callable[[], Vectors]] = {
        "original": lambda: np.asarray(
            original.encode(chunks, normalize_embeddings=True, show_progress_bar=False), dtype=np.float32
        ),
        "ours": lambda: encoder.encode(chunks),
    }
    original.encode(chunks[:8], show_progress_bar=False)
    encoder.encode(chunks[:64])
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    vectors: dict[str, Vectors] = {}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            vectors[name] = run()
            seconds[name].append(time.perf_counter() - start)
    cosines = (vectors["original"] * vectors["ours"]).sum(axis=1)
    slow, fast = (statistics.median(seconds[name]) for name in ("original", "ours"))
    p50, p95 = _query_milliseconds(encoder)
    return Outcome(
        chunks=len(chunks),
        original=len(chunks) / slow,
        ours=len(chunks) / fast,
        ratio=statistics.median(a / b for a, b in zip(seconds["original"], seconds["ours"], strict=True)),
        min_cosine=float(cosines.min()),
        mean_cosine=float(cosines.mean()),
        query_p50=p50,
        query_p95=p95,
    )


def _query_milliseconds(encoder: Encoder) -> tuple[float, float]:
    spent = []
    for number in range(QUERIES + 20):
        start = time.perf_counter()
        encoder.encode_query(f"how do refunds of partially captured payments work, case {number}?")
        spent.append((time.perf_counter() - start) * 1e3)
    p50, p95 = np.percentile(spent[20:], (50, 95))
    return float(p50), float(p95)


def _original(model: str) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(locate(model).path), device="cpu", local_files_only=True)


def _table(outcome: Outcome) -> Table:
    table = Table("measure", "value", title=f"{outcome.chunks} chunks of {CHUNK_TOKENS} tokens")
    for name, value in (
        ("SentenceTransformer.encode, fp32", f"{outcome.original:.1f} chunks/s"),
        ("load_encoder(…).encode", f"{outcome.ours:.1f} chunks/s"),
        ("ratio (median of rounds)", f"{outcome.ratio:.2f}"),
        ("cosine, lowest / mean", f"{outcome.min_cosine:.6f} / {outcome.mean_cosine:.6f}"),
        ("one query, p50 / p95", f"{outcome.query_p50:.2f} / {outcome.query_p95:.2f} ms"),
    ):
        table.add_row(name, value)
    return table


def print_encoding(chunks: int = 192, rounds: int = 3, model: str = MINILM) -> None:
    """Print the table of one run: ``chunks`` real texts, through both, ``rounds`` times in turn."""
    warnings.simplefilter("ignore", FutureWarning)
    with tempfile.TemporaryDirectory() as cache:
        encoder = load_encoder(model, cache_dir=Path(cache))
        own, installed = Path(__file__).parents[2], Path(sysconfig.get_path("purelib"))
        texts = texts_under([own, installed], encoder.tokenizer, chunks)
        outcome = measure(encoder, _original(model), texts, rounds)
    Console().print(_table(outcome))
