"""Killed writers, full disks and busy readers: the published generation answers throughout, and nothing is lost."""

import multiprocessing
import resource
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import forked
import pytest
from support import MemorySource, found_by_words, memory_parts, published_texts, sync

from lab.campaigns.processes import CONTEXT
from nornweave.core.errors import StoreError
from nornweave.core.text import analyzer

# Enough that a sync of them takes longer than the longest delay before it is killed.
DOCUMENTS = 150
PROGRAM = textwrap.dedent(
    """
    import sys
    sys.path.insert(0, {tests!r})
    from pathlib import Path
    from support import memory_parts, sync
    from test_robustness import corpus
    source = corpus({word!r})
    print("started", flush=True)
    print(sync(memory_parts(Path({folder!r}), source)).generation, flush=True)
    """
)


def corpus(word: str, documents: int = DOCUMENTS) -> MemorySource:
    """Return documents which all say ``word``; other words are other revisions of them."""
    source = MemorySource()
    for number in range(documents):
        source.write(f"{number:04}.txt", f"{word} document {number} " + "filler words to cut into chunks " * 20)
    source.revisions = dict.fromkeys(source.documents, sum(map(ord, word)))
    return source


def writer_program(folder: Path, word: str) -> list[str]:
    """Return a command that syncs documents which all say ``word``."""
    code = PROGRAM.format(tests=str(Path(__file__).parent), folder=str(folder), word=word)
    return [sys.executable, "-c", code]


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.02, 0.3, 0.8])
def test_kill_minus_nine_leaves_the_published_generation_and_the_next_sync_finishes(
    tmp_path: Path, delay: float
) -> None:
    sync(memory_parts(tmp_path, corpus("alpha", 50)))
    parts = memory_parts(tmp_path, MemorySource())
    before = published_texts(parts)

    with forked.Popen(writer_program(tmp_path, "omega"), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
    published = published_texts(parts)
    assert published == before or len(published) == DOCUMENTS, "either the old generation or the complete new one"

    sync(memory_parts(tmp_path, corpus("omega")))
    assert found_by_words(parts, "omega") == {f"{number:04}.txt" for number in range(DOCUMENTS)}
    assert found_by_words(parts, "alpha") == set()
    assert not list(tmp_path.rglob(".build-*")), "what the killed builder left is cleaned up"


@pytest.mark.parametrize("filled", ["gen-000001-000.duckdb", "gen-000001-000.duckdb.arrays"])
def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path, filled: str) -> None:
    sync(memory_parts(tmp_path, corpus("alpha", 50)))
    parts = memory_parts(tmp_path, MemorySource())
    limit = (tmp_path / "generations" / filled).stat().st_size // 2

    # A write beyond the limit fails as on a full disk.
    fill_disk = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
    full = forked.run(writer_program(tmp_path, "omega"), preexec_fn=fill_disk, text=True, timeout=120)
    assert full.returncode == 1
    assert "StoreError" in full.stderr
    assert len(found_by_words(parts, "alpha")) == 50

    sync(memory_parts(tmp_path, corpus("omega")))
    assert len(found_by_words(parts, "omega")) == DOCUMENTS


def _read_until(folder: str, stop: multiprocessing.Event, failures: multiprocessing.Queue) -> None:  # type: ignore[valid-type]
    parts = memory_parts(Path(folder), MemorySource())
    reads = 0
    while not stop.is_set():
        try:
            with parts.store.files.open(parts.store.current()) as generation:
                if len(generation.chunks(generation.holding(analyzer.query_terms("version")))) != 1:
                    failures.put("a published document was not found")
            reads += 1
        except StoreError as error:
            failures.put(str(error))
    failures.put(reads)


@pytest.mark.slow
def test_readers_never_fail_while_generations_are_published(tmp_path: Path) -> None:
    source = MemorySource()
    source.write("a.txt", "version 0")
    parts = memory_parts(tmp_path, source)
    sync(parts)
    context = CONTEXT
    stop, failures = context.Event(), context.Queue()
    reader = context.Process(target=_read_until, args=(str(tmp_path), stop, failures))
    reader.start()
    try:
        for number in range(1, 11):  # generations go after the third
            source.write("a.txt", f"version {number} " + "more " * number)
            assert sync(parts).published
            time.sleep(0.05)
    finally:
        stop.set()
    reads = failures.get(timeout=60)
    reader.join(timeout=60)
    assert isinstance(reads, int), reads
    assert reads > 0
    assert failures.empty()


def test_a_damaged_working_file_says_what_to_do(tmp_path: Path) -> None:
    source = MemorySource()
    source.write("a.txt", "alpha")
    parts = memory_parts(tmp_path, source)
    sync(parts)
    (tmp_path / "working.duckdb").write_bytes(b"not a database" * 1000)

    with pytest.raises(StoreError, match=r"working\.duckdb"):
        sync(parts)
    assert found_by_words(parts, "alpha") == {"a.txt"}, "the published generation answers all the same"

    (tmp_path / "working.duckdb").unlink()
    assert sync(parts).added == 1
