"""What every store promises, writing and reading: the same tests, over files and over a real PostgreSQL server."""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest
from postgres_server import PostgresServer, postgres_server, store_in
from support import MemorySource, memory_parts, sync
from waiting import until

from lab.access.corpora import DIMENSIONS, Written, publish_into
from nornweave.carry.postgresql.server import REFUSED_S, Server, close_idle
from nornweave.config import StorageSettings
from nornweave.core.access import OPERATOR
from nornweave.core.errors import DomainBusyError, NoGenerationError, StoreError
from nornweave.core.files.paths import Within
from nornweave.core.types import Entry
from nornweave.index.corpus import DuckDBStore
from nornweave.index.generations.serving import ServedGeneration
from nornweave.index.searching.arrays import open_arrays
from nornweave.index.searching.generation_file import facts_of, read_rows
from nornweave.ingest.records import DomainParts

KINDS = ("duckdb", "postgresql")
Make = Callable[..., Any]


@pytest.fixture(scope="module")
def make(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Return what makes an empty store of a kind."""
    numbers = itertools.count()

    def made(kind: str, storage: StorageSettings | None = None, dimensions: int = DIMENSIONS) -> Any:
        folder, settings = tmp_path_factory.mktemp("store"), storage or StorageSettings()
        if kind == "duckdb":
            return DuckDBStore(folder, settings, dimensions=dimensions)
        return store_in(Server(server.url, f"contract_{next(numbers)}"), folder, settings, dimensions=dimensions)

    return made


def parts_of(store: Any, *sources: MemorySource) -> DomainParts:
    parts = memory_parts(store.folder, *sources)
    return DomainParts(
        domain=parts.domain, sources=parts.sources, chunker=parts.chunker, encoder=parts.encoder, store=store
    )


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, make: Make) -> Any:
    return make(request.param)


def test_nothing_is_served_before_something_is_published(store: Any) -> None:
    assert (store.current(), store.generations(), store.files.published_at()) == (None, (), None)
    assert store.published_facts() == {}
    with pytest.raises(NoGenerationError), ServedGeneration(store.files).use(OPERATOR):
        pass
    with pytest.raises(NoGenerationError):
        store.rollback()


def test_a_change_is_published_and_can_be_taken_back(store: Any) -> None:
    source = MemorySource()
    source.write("a", "alpha")
    parts = parts_of(store, source)
    first = sync(parts).generation
    assert first == store.current() == "gen-000001"
    assert sync(parts).generation == first, "nothing changed, nothing is published"
    source.write("b", "beta")
    report = sync(parts)
    assert (report.generation, store.generations()) == ("gen-000002", ("gen-000001", "gen-000002"))
    assert store.published_facts()["generation"] == "gen-000002"
    with store.files.open(report.generation) as index:
        assert sorted(index.paths()) == ["a", "b"]
    assert store.rollback() == store.current() == first
    with pytest.raises(NoGenerationError):
        store.rollback()
    with pytest.raises(NoGenerationError):
        store.rollback("gen-000009")
    del source.documents["a"]
    assert sync(parts).generation == "gen-000003", "a name is never used twice"


def test_the_manifest_knows_what_was_stored_and_what_failed(store: Any) -> None:
    source = MemorySource()
    for path, text in {"a": "alpha", "b": "\0broken", "c": "\0skipped", "d": "\0locked", "nul": "be\0fore"}.items():
        source.write(path, text)
    sync(parts_of(store, source))
    with store.writer() as writer:
        outcomes = {path: stored.outcome for (_, path), stored in writer.manifest().items()}
        assert [failure.path for failure in writer.failures()] == ["b", "d"]
        assert [failure.path for failure in writer.skips()] == ["c"]
        counts = writer.counts()
        told = writer.manifest({"memory": Within(frozenset({"b", "n", "e"})), "other": None})
        assert set(told) == {("memory", "b")}, "a name that only begins like it is another one"
        assert writer.manifest({"memory": None}) == writer.manifest()
        assert [(each.source_id, each.known, each.stored) for each in writer.tally()] == [("memory", 5, 2)]
    assert outcomes == {"a": "stored", "b": "failed", "c": "skipped", "d": "transient", "nul": "stored"}
    assert (counts.documents, counts.failed, counts.missing_vectors, counts.orphan_chunks) == (2, 2, 0, 0)


def test_a_candidate_is_seen_by_nobody_but_who_measures_it(store: Any) -> None:
    source = MemorySource()
    source.write("a", "alpha")
    sync(parts_of(store, source))
    facts = {"domain": "documentation", "encoder": "x", "access": "{}"}
    with store.writer() as writer:
        candidate = writer.build("run", facts)
        assert store.generations() == ("gen-000001",)
        measured = store.files.of_candidate(candidate.generation)
        assert (measured.current(), measured.all()) == (candidate.generation, (candidate.generation,))
        with measured.open(candidate.generation) as index:
            assert index.chunk_count == 1
        writer.discard(candidate)
    assert store.current() == "gen-000001"
    with pytest.raises(StoreError):
        measured.open(candidate.generation)


def test_who_reads_an_old_generation_goes_on_while_new_ones_come(make: Make) -> None:
    for kind in KINDS:
        store = make(kind, StorageSettings(keep_generations=1))
        source = MemorySource()
        source.write("a", "alpha")
        parts = parts_of(store, source)
        sync(parts)
        served = ServedGeneration(store.files)
        with served.use(OPERATOR) as index:
            for number in range(3):
                source.write("a", f"beta {number}")
                sync(parts)
            assert [chunk.content for chunk in index.chunks(np.array([0], np.int32)).values()] == ["alpha"]
            assert index.document_frequencies(["alpha", "beta"]) == {"alpha": 1, "beta": 0}
        assert served.refresh()
        source.write("a", "gamma")
        sync(parts)
        served.close()
        source.write("a", "delta")
        sync(parts)
        assert "gen-000001" not in store.generations(), kind
        assert store.generations()[-1] == store.current()


def test_only_one_writes(store: Any) -> None:
    with store.writer(purpose="a long sync"):
        with pytest.raises(DomainBusyError, match="a long sync"), store.writer():
            pass
        with pytest.raises(DomainBusyError, match="a long sync"):
            store.rollback()
    with store.writer():
        pass


KILLED = """
import sys
from pathlib import Path
import numpy as np
sys.path[:0] = [sys.argv[1]]
from postgres_server import store_in
from nornweave.config import StorageSettings
from nornweave.index.corpus import DuckDBStore
from nornweave.carry.postgresql.server import Server
folder, url, schema = Path(sys.argv[2]), sys.argv[3], sys.argv[4]
if url:
    store = store_in(Server(url, schema), folder)
else:
    store = DuckDBStore(folder, StorageSettings(), dimensions=16)
with store.writer(purpose="doomed") as writer:
    writer.add_vectors(["left"], np.ones((1, 16), np.float32))
    writer.build("doomed", {"domain": "documentation", "encoder": "x", "access": "{}"})
    print("built", flush=True)
    sys.stdin.read()
"""


def test_a_writer_that_is_killed_leaves_what_was_published(store: Any, server: PostgresServer) -> None:
    source = MemorySource()
    source.write("a", "alpha")
    parts = parts_of(store, source)
    sync(parts)
    place = (server.url, server_of(store).schema) if store.files._elsewhere else ("", "")
    doomed = forked.Popen(
        [sys.executable, "-c", KILLED, str(Path(__file__).parents[1]), str(store.folder), *place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == b"built\n"
        with pytest.raises(DomainBusyError, match="doomed"), store.writer():
            pass
        doomed.send_signal(signal.SIGKILL)
    assert store.generations() == ("gen-000001",)
    source.write("a", "beta")
    with store.writer(wait_s=60) as writer:
        assert writer._rows("select 1 from embeddings where embedding_key = 'left'"), "what was encoded is not lost"
    published = sync(parts).generation
    assert store.generations() == ("gen-000001", published)
    assert not list(store.files.folder.glob(".build-*"))


WRITTEN = (
    Written("open", "a.md", "alpha alpha beta. Timeout is 30 seconds"),
    Written("inner", "docs/b.md", "alpha gamma WCAG"),
    Written("secret", "docs/c.md", "alpha delta"),
    Written("open", "d.md", "alpha epsilon retry limit", ["guests"]),
    Written("inner", "e.md", "alpha zeta", ["board"]),
    *(Written("open", f"many/{number}.md", f"alpha word{number} word{number % 7} beta") for number in range(60)),
)


def test_machines_search_the_file_that_one_with_files_alone_builds(make: Make, tmp_path: Path) -> None:
    stores = [make(kind) for kind in KINDS]
    for store in stores:
        publish_into(store, WRITTEN)
    stores[1] = store_in(server_of(stores[1]), tmp_path / stores[1].folder.name)  # of another machine
    for store in stores:
        store.files.open(store.current()).close()
    files = [store.data_files(store.current())[0] for store in stores]
    names = [name for (name,) in read_rows(files[0], "select table_name from duckdb_tables() order by 1")]
    assert {"documents", "chunks", "lengths", "facets", "facet_values", "fact_keys"} <= {*names}
    for name in set(names) - {"publications", "meta"}:
        one, other = (read_rows(file, f"select * from {name} order by all") for file in files)
        assert one == other, name
    arrays = [open_arrays(file.path, facts_of(file.path)["arrays"]) for file in files]
    assert {"vectors", "cards.text", "pairs.chunks", "names.chunks"} <= arrays[0].keys()
    assert arrays[0].keys() == arrays[1].keys()
    for name in arrays[0]:
        np.testing.assert_array_equal(arrays[0][name], arrays[1][name], name)


@pytest.mark.vss
def test_a_segment_has_its_index_over_vectors_in_its_file(make: Make) -> None:
    query, found = np.full(DIMENSIONS, DIMENSIONS**-0.5, np.float32), []
    for kind in KINDS:
        store = make(kind, StorageSettings(vector_index="hnsw"))
        publish_into(store, WRITTEN)
        with store.files.open(store.current(), {}) as index:
            assert index.meta["built_with"] == "hnsw"
            found.append(list(index.dense(query, 5).numbers))
    assert found[0] == found[1]


@pytest.mark.slow
def test_the_last_copy_answers_while_the_server_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres_server(monkeypatch) as server:
        store = store_in(Server(server.url, "recovers"), tmp_path / "store")
        publish_into(store, WRITTEN)
        served = ServedGeneration(store.files)
        query = np.full(DIMENSIONS, DIMENSIONS**-0.5, np.float32)
        with served.use(OPERATOR) as index:
            before = index.dense(query, 10)
        server.stop()
        with served.use(OPERATOR) as index:
            assert index.document_frequencies(["alpha"])["alpha"] == len(WRITTEN)
            assert list(index.contents(np.array([0], np.int32))) == [0]
            assert list(index.dense(query, 10).numbers) == list(before.numbers), "searched in the copy"
        with pytest.raises(StoreError, match="does not answer"), store.writer():
            pass
        assert not served.refresh()
        assert "does not answer" in str(served.problem)
        with pytest.raises(StoreError, match="does not answer"), ServedGeneration(store.files).use(OPERATOR):
            pass
        server.start()
        until(lambda: served.refresh() or served.problem is None)
        publish_into(store, WRITTEN[1:])
        assert served.refresh()
        with served.use(OPERATOR) as index:
            assert index.document_count == len(WRITTEN) - 1
        served.close()
        close_idle()


def server_of(store: Any) -> Server:
    server: Server = store.files._elsewhere._reader._server
    return server


def test_another_machine_fetches_a_segment_once(make: Make, tmp_path: Path) -> None:
    store = make("postgresql")
    publish_into(store, WRITTEN)
    elsewhere = store_in(server_of(store), tmp_path / store.folder.name).files
    assert elsewhere.current() == store.current()
    with elsewhere.open(store.current()) as there, store.files.open(store.current()) as here:
        assert there.chunks(np.arange(5, dtype=np.int32)) == here.chunks(np.arange(5, dtype=np.int32))
    (segment,) = elsewhere.folder.glob("*.duckdb")
    fetched = segment.stat().st_mtime_ns
    elsewhere.open(store.current()).close()
    assert segment.stat().st_mtime_ns == fetched
    segment.write_bytes(segment.read_bytes()[:-100])
    with elsewhere.open(store.current()) as there:
        assert there.document_count == len(WRITTEN)


def test_processes_of_a_machine_fetch_a_segment_once(make: Make, tmp_path: Path) -> None:
    store = make("postgresql")
    publish_into(store, WRITTEN)
    folder = tmp_path / store.folder.name
    with ThreadPoolExecutor(4) as executor:
        machines = [store_in(server_of(store), folder).files for _ in range(4)]

        def opened(files: Any) -> int:
            with files.open(files.current()) as index:
                return int(index.document_count)

        assert {*executor.map(opened, machines)} == {len(WRITTEN)}
    assert not [file for file in (folder / "generations").iterdir() if file.name.startswith(".")]


class Crashing(MemorySource):
    """A source that ends the server while its second document is read, once."""

    def __init__(self, server: PostgresServer) -> None:
        super().__init__()
        self.server: PostgresServer | None = server

    def fetch(self, entry: Entry) -> bytes:
        if self.server and entry.path == "b":
            self.server.stop()
            self.server = None
        return super().fetch(entry)


@pytest.mark.slow
def test_a_server_that_is_killed_in_the_middle_is_an_error_and_the_next_sync_completes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server(monkeypatch) as server, ThreadPoolExecutor(2) as executor:
        postgres = Server(server.url, "killed")
        store = store_in(postgres, tmp_path / "store")
        calm = MemorySource()
        calm.write("a", "alpha")
        sync(parts_of(store, calm))
        waiting = executor.submit(postgres.rows, "select pg_sleep(60)")
        until(lambda: postgres.rows("select count(*) from pg_stat_activity where query like 'select pg_sleep%%'")[0][0])
        source = Crashing(server)
        source.revisions |= calm.revisions
        for path in "abc":
            source.write(path, f"beta {path}")
        with pytest.raises(StoreError, match="does not answer"):
            sync(parts_of(store, source))
        with pytest.raises(StoreError, match="does not answer"):
            waiting.result()
        server.start()
        time.sleep(REFUSED_S)  # so long readers believe that it is away
        assert store.generations() == ("gen-000001",)
        report = sync(parts_of(store, source))
        assert (report.generation, report.failed) == (store.current(), ())
        with store.files.open(store.current()) as index:
            texts = index.contents(np.arange(index.size, dtype=np.int32)).values()
            assert sorted(texts) == ["beta a", "beta b", "beta c"]
        with store.writer() as writer:
            assert writer.counts().missing_vectors == 0
        close_idle()
