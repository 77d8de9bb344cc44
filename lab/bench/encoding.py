"""How fast chunks are encoded, against ``SentenceTransformer.encode``: ``python -m lab.bench --only encoding``.

Both encode the same chunks in the same run, in turns, since the speed of a shared machine drifts by a factor of two
within minutes: the ratio is the result, chunks per second are not. Targets: ratio ≥ 2.8 with VNNI, ≥ 4.5 where
bfloat16 is fast; cosine ≥ .999 of floating point, ≥ .998 on average of int8.
"""

from __future__ import annotations

import json
import statistics
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import numpy as np
from rich.console import Console
from rich.table import Table

from nornweave.core.errors import EncoderError
from nornweave.core.text.spans import Tokenizer
from nornweave.models.encoders import Encoder, Vectors, load_encoder
from nornweave.models.encoders.port import Wanted
from nornweave.models.folders import MINILM, locate

CHUNK_TOKENS = 238
CHUNKS_PER_FILE = 4
"""At most: a few long files would make the texts too much alike."""
TEXTS = ("*.py", "*.md", "*.rst", "*.txt")
QUERIES = 200
ORIGINAL = "SentenceTransformer.encode, fp32"


@dataclass(frozen=True, slots=True)
class EncodingOutcome:
    """What a run measured of one way to encode; medians over the rounds.

    Attributes:
        ratio: how many times as fast as the original.
        cpu_ratio: the same by the CPU time of the process, which what else runs on the machine hardly changes.
        cosine: lowest and mean, to the vectors of the original.
        query_ms: p50 and p95 of one query; ``None`` of the original.
    """

    per_second: float
    ratio: float
    cpu_ratio: float
    cosine: tuple[float, float]
    query_ms: tuple[float, float] | None = None


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


def measure(
    encoders: Mapping[str, Encoder], original: Any, chunks: list[str], rounds: int
) -> dict[str, EncodingOutcome]:
    """Encode with all, in turns, ``rounds`` times after one warm-up each; the original comes first."""
    runs: dict[str, Callable[[list[str]], Vectors]] = {
        ORIGINAL: lambda texts: np.asarray(
            original.encode(texts, normalize_embeddings=True, show_progress_bar=False), dtype=np.float32
        ),
        **{name: encoder.encode for name, encoder in encoders.items()},
    }
    for run in runs.values():
        run(chunks[:64])
    wall: dict[str, list[float]] = {name: [] for name in runs}
    cpu: dict[str, list[float]] = {name: [] for name in runs}
    vectors: dict[str, Vectors] = {}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter(), time.process_time()
            vectors[name] = run(chunks)
            wall[name].append(time.perf_counter() - start[0])
            cpu[name].append(time.process_time() - start[1])
    outcomes = {}
    for name in runs:
        cosines = (vectors[ORIGINAL] * vectors[name]).sum(axis=1)
        outcomes[name] = EncodingOutcome(
            per_second=len(chunks) / statistics.median(wall[name]),
            ratio=_ratio(wall[ORIGINAL], wall[name]),
            cpu_ratio=_ratio(cpu[ORIGINAL], cpu[name]),
            cosine=(float(cosines.min()), float(cosines.mean())),
            query_ms=_query_milliseconds(encoders[name]) if name in encoders else None,
        )
    return outcomes


def _ratio(original: list[float], ours: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(original, ours, strict=True))


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


def _table(outcomes: Mapping[str, EncodingOutcome], chunks: int) -> Table:
    columns = ("with", "chunks/s", "ratio", "ratio by CPU time", "cosine, lowest / mean", "one query, p50 / p95 ms")
    table = Table(*columns, title=f"{chunks} chunks of {CHUNK_TOKENS} tokens; ratios are medians of rounds")
    for name, one in outcomes.items():
        query = "" if one.query_ms is None else f"{one.query_ms[0]:.2f} / {one.query_ms[1]:.2f}"
        cosine = f"{one.cosine[0]:.6f} / {one.cosine[1]:.6f}"
        table.add_row(name, f"{one.per_second:.1f}", f"{one.ratio:.2f}", f"{one.cpu_ratio:.2f}", cosine, query)
    return table


def print_encoding(chunks: int = 192, rounds: int = 3, model: str = MINILM) -> None:
    """Print the table of one run: ``chunks`` real texts, through all, ``rounds`` times in turn."""
    warnings.simplefilter("ignore", FutureWarning)
    with tempfile.TemporaryDirectory() as cache:
        taken = load_encoder(model, cache_dir=Path(cache)).version
        encoders = {}
        for precision in get_args(Wanted)[1:]:
            with suppress(EncoderError):  # not every model has int8
                encoder = load_encoder(model, cache_dir=Path(cache), precision=precision)
                encoders[f"{precision}{', taken here' if encoder.version == taken else ''}"] = encoder
        own, installed = Path(__file__).parents[2], Path(sysconfig.get_path("purelib"))
        texts = texts_under([own, installed], next(iter(encoders.values())).tokenizer, chunks)
        outcomes = measure(encoders, _original(model), texts, rounds)
        speeds = [json.loads(file.read_text(encoding="utf-8")) for file in Path(cache).glob("speeds-*.json")]
    Console(width=140).print(_table(outcomes, len(texts)), *speeds)
