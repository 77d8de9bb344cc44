"""Three ways to break an index that the gate must not let through, and an unchanged one that it always must.

With the real encoder, on the example corpus, as a candidate of a sync is measured.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest
import yaml

from evals.evaluation import GenerationReport, evaluate_candidate
from nornweave.ask.search.query import read_query
from nornweave.carry.wiring import domain_folder
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.text import analyzer
from nornweave.core.types import Domain
from nornweave.index.connection import Connection
from nornweave.ingest.pipeline import DomainSync, run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "examples" / "payments"
RERUNS = 3

Plant = Callable[[Connection], None]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The code and the documentation of the example corpus, published, with the judgments that it comes with."""
    folder = tmp_path_factory.mktemp("planted")
    configured = {
        "data_dir": "var",
        "sources": [
            {"id": "code", "domain": "code", "type": "files", "path": str(CORPUS / "code")},
            {
                "id": "docs",
                "domain": "documentation",
                "type": "files",
                "path": str(CORPUS),
                "include": ["docs/api/payments.md", "docs/api/webhooks.md"],  # few: they are measured again and again
                "metadata": str(CORPUS / "documentation.metadata.yaml"),
            },
        ],
        "domains": {
            name: {"evaluation": {"judgments": [str(ROOT / "evals" / "golden" / name)], "generated": generated}}
            for name, generated in (("code", 40), ("documentation", 5))
        },
    }
    (folder / "nornweave.yaml").write_text(yaml.safe_dump(configured), encoding="utf-8")
    settings = load_settings(folder / "nornweave.yaml", {})
    for domain in settings.served_domains:
        run(domain_parts(settings, domain), SyncOptions(wait_s=0))
    # From here on history knows what is published; it cannot be measured any more once the analyzer is another one.
    assert not measured(settings, Domain.CODE).refused
    return settings


def intact(connection: Connection) -> None:
    """Leave everything as it is."""


def measured(settings: Settings, domain: Domain, plant: Plant = intact) -> GenerationReport:
    """Measure a candidate of everything, built out of a working file in which something was planted."""
    working = domain_folder(settings, domain) / "working.duckdb"
    kept = working.with_name("kept.duckdb")
    shutil.copy(working, kept)
    try:
        with DomainSync(domain_parts(settings, domain), SyncOptions(full=True, wait_s=0)) as sync:
            sync.store_changes()
            sync.embed()
            plant(sync._writer._connection)  # type: ignore[attr-defined]
            candidate = sync.build().candidate
            assert candidate
            report = evaluate_candidate(settings, domain, candidate, run_id="test")
    finally:
        kept.replace(working)
    assert report
    return report


@contextmanager
def without_splitting() -> Iterator[None]:
    """Let identifiers be whole words only, and let the index know that it is another analyzer."""

    def whole(word: str) -> Iterator[tuple[str, int, int]]:
        lowered = word.lower()
        yield lowered if "." in word else analyzer._stemmers.english.stemWord(lowered), 0, len(word)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analyzer, "VERSION", "analysis-without-splitting")
        patch.setattr(analyzer, "_spans", whole)
        forget_analyses()
        try:
            yield
        finally:
            forget_analyses()


def forget_analyses() -> None:
    """Forget what this process remembers of words and queries: another analyzer is another process."""
    for remembered in (analyzer._terms_of, read_query):
        remembered.cache_clear()


def shuffle_embeddings(connection: Connection) -> None:
    """Give every text the vector of another one."""
    connection.execute(
        """
        create temp table shuffled as
        with
          named as (select embedding_key, row_number() over (order by embedding_key) as place from embeddings),
          moved as (select "vector", row_number() over (order by hash(embedding_key)) as place from embeddings)
        select embedding_key, moved."vector" from named join moved using (place)
        """
    )
    connection.execute(
        'update embeddings set "vector" = shuffled."vector" from shuffled '
        "where shuffled.embedding_key = embeddings.embedding_key"
    )


def drop_half_of_the_chunks(connection: Connection) -> None:
    """Lose text that its documents still have."""
    connection.execute("delete from chunks where hash(chunk_id) % 2 = 0")


@pytest.mark.parametrize(
    ("code", "plant"),
    [(without_splitting, intact), (nullcontext, shuffle_embeddings), (nullcontext, drop_half_of_the_chunks)],
    ids=["without-splitting", "shuffled-embeddings", "half-of-the-chunks"],
)
def test_a_planted_regression_is_refused(
    settings: Settings, code: Callable[[], AbstractContextManager[None]], plant: Plant
) -> None:
    with code():
        report = measured(settings, Domain.CODE, plant)

    assert report.refused
    assert report.problems == ()
    worse = [finding.comparison for finding in report.findings if finding.refuses]
    assert worse
    assert all(comparison and comparison.p_drop < 0.05 and comparison.worse for comparison in worse)


def test_an_unchanged_corpus_is_never_refused(settings: Settings) -> None:
    for again in range(RERUNS):
        report = measured(settings, Domain.DOCUMENTATION)
        assert not report.refused, again
        assert len(report.evaluated) == 2
        assert all(finding.comparison and not finding.comparison.worse for finding in report.findings)
