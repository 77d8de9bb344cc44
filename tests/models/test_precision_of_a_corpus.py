"""Vectors of one precision, or of one model, never meet others in a generation, on whatever CPU a corpus goes on."""

import json
from pathlib import Path

import numpy as np
import pytest
from configurations import configured, files
from questions import query, question_of
from support import BROKEN, MemorySource, memory_parts

from nornweave.ask.engine import Engine
from nornweave.carry import wiring
from nornweave.config import Settings
from nornweave.core.types import Domain
from nornweave.index.corpus import DuckDBStore
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions, SyncReport
from nornweave.ingest.wiring import domain_parts
from nornweave.models.encoders import Vectors
from nornweave.models.encoders.hashing import HashEncoder

DOCUMENTS = {"refunds.md": "# Refunds\n\nA refund takes three days.", "voids.md": "# Voids\n\nA void is free."}


class Mirrored(HashEncoder):
    """Another model of the same size: every vector points the other way."""

    def __init__(self) -> None:
        super().__init__(16)
        self.version = "mirrored:16"

    def encode(self, texts: object, **options: object) -> Vectors:
        return -super().encode(texts, **options)  # type: ignore[arg-type]


def _vectors(store: object) -> tuple[list[str], Vectors, str]:
    assert isinstance(store, DuckDBStore)
    current = store.current()
    assert current
    with store.files.open(current) as generation:
        numbers = np.arange(generation.chunk_count, dtype=np.int32)
        contents = generation.contents(numbers)
        return (
            [contents[number] for number in numbers.tolist()],
            generation.vectors(numbers),
            generation.meta["encoder"],
        )


def test_what_cannot_be_read_again_gets_vectors_of_the_new_model_too(tmp_path: Path) -> None:
    here, away = MemorySource("here"), MemorySource("away")
    here.write("kept.txt", "refunds take three days")
    here.write("broken.txt", "a void is free")
    away.write("away.txt", "disputes cost fifteen euros")
    parts = memory_parts(tmp_path, here, away)
    run(parts, SyncOptions(wait_s=0))
    here.write("broken.txt", BROKEN)
    away.unavailable = True
    parts = memory_parts(tmp_path, here, away, encoder=Mirrored())
    report = run(parts, SyncOptions(wait_s=0))
    texts, vectors, encoder = _vectors(parts.store)
    assert (report.embedded, len(texts), encoder) == (3, 3, "mirrored:16")
    assert np.allclose(vectors, Mirrored().encode(texts), atol=1e-3)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wiring._load.cache_clear()
    return _configured(tmp_path)


def _configured(folder: Path, precision: str = "auto") -> Settings:
    (folder / "docs").mkdir(exist_ok=True)
    for path, text in DOCUMENTS.items():
        (folder / "docs" / path).write_text(text, encoding="utf-8")
    model = {"model": "sentence-transformers/all-MiniLM-L6-v2", "dimensions": 384, "precision": precision}
    return configured(folder, files("docs"), domain={"embedding": model, "reranking": {"model": None}})


def _synced(settings: Settings) -> tuple[SyncReport, str]:
    parts = domain_parts(settings, Domain.DOCUMENTATION)
    return run(parts, SyncOptions(wait_s=0)), parts.store.published_facts()["encoder"]


def _move_to_a_cpu(folder: Path, *, int8_per_second: float, int8_cosine: float) -> None:
    """Let the machine's notes say what another CPU would."""
    [notes] = (folder / "cache").rglob("speeds-*.json")
    speeds = {"per_second": {"float32": 30.0, "int8": int8_per_second}, "int8_cosine": int8_cosine}
    notes.write_text(json.dumps(speeds), encoding="utf-8")
    wiring._load.cache_clear()


@pytest.mark.slow
def test_a_copied_corpus_goes_on_in_its_precision_while_the_cpu_can(tmp_path: Path, settings: Settings) -> None:
    settings = _configured(tmp_path, "int8")
    report, encoder = _synced(settings)
    assert "+int8." in encoder
    chunks = report.embedded
    settings = _configured(tmp_path)

    _move_to_a_cpu(tmp_path, int8_per_second=31, int8_cosine=0.9991)  # slow, but right: AMX, say
    (tmp_path / "docs" / "new.md").write_text("# Disputes\n\nA dispute costs fifteen euros.", encoding="utf-8")
    report, same = _synced(settings)
    assert (report.embedded, same) == (report.chunks - chunks, encoder)
    # Queries are encoded in what is fastest here: they search vectors of any precision.
    with Engine(settings, watch=False) as engine:
        assert "+int8." not in engine.agents[Domain.DOCUMENTATION].encoder().encoder.version  # type: ignore[union-attr]
        answer = query(engine, question_of("what does a dispute cost?"))
    assert answer["items"][0]["citation"]["source_path"] == "new.md"
    assert engine.agents[Domain.DOCUMENTATION].encoding.mismatch(settings_meta(settings)) is None

    _move_to_a_cpu(tmp_path, int8_per_second=31, int8_cosine=0.9955)  # no VNNI: int8 vectors would be wrong
    report, floating = _synced(settings)
    assert (report.embedded, "+int8." in floating) == (report.chunks, False)

    _move_to_a_cpu(tmp_path, int8_per_second=72, int8_cosine=0.9991)  # back again: nothing is encoded anew
    report, same = _synced(settings)
    assert (report.embedded, report.published, same) == (0, False, floating)


def settings_meta(settings: Settings) -> dict[str, str]:
    return dict(wiring.store_of(settings, Domain.DOCUMENTATION).published_facts())
