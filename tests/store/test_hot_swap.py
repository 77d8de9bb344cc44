"""Hot swap: a new generation answers without a failed query, a damaged one never does, nothing stays open."""

import gc
import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import MemorySource, memory_parts, sync
from waiting import until

from lab.small_segments import publish_copy
from nornweave.core.access import OPERATOR
from nornweave.core.errors import NoGenerationError, StoreError
from nornweave.core.types import GenerationId
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.generations.serving import FIRST_RETRY_S, LONGEST_RETRY_S, ServedGeneration
from nornweave.index.searching.arrays import arrays_file

PUBLICATIONS = 30
READERS = 3
DOCUMENTS = 6
WORDS = ("ant", "bee", "cat", "dog", "elk")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Generations of one corpus as it changes: the same documents, every time about another animal."""
    folder = tmp_path_factory.mktemp("built")
    source = MemorySource()
    parts = memory_parts(folder / "domain", source)
    kept = []
    for word in WORDS:
        for number in range(DOCUMENTS):
            source.write(f"{number:02d}", f"{word} number {number}")
        sync(parts)
        name = parts.store.current()
        assert name is not None
        kept.append(folder / f"{word}.duckdb")
        segment = parts.store.files.data_files(name)[0].path
        shutil.copy(segment, kept[-1])
        shutil.copy(arrays_file(segment), arrays_file(kept[-1]))
    return tuple(kept)


@pytest.fixture
def files(tmp_path: Path) -> GenerationFiles:
    folder = tmp_path / "generations"
    folder.mkdir()
    return GenerationFiles(folder)


def publish(files: GenerationFiles, built: Path, *, prune: bool = True) -> GenerationId:
    """Publish a copy of a built generation under the next name, as a writer does."""
    name = publish_copy(files, built)
    if prune:
        files.prune(3)
    return name


def damage(files: GenerationFiles, name: GenerationId) -> None:
    segment_of(files, name).write_bytes(b"no database " * 5000)


def segment_of(files: GenerationFiles, name: GenerationId) -> Path:
    (file,) = files.data_files(name)
    return file.path


@pytest.fixture
def served(files: GenerationFiles) -> Iterator[ServedGeneration]:
    served = ServedGeneration(files)
    yield served
    served.close()


def word_of(served: ServedGeneration) -> str:
    """Read everything that a query touches, and check that it is of one piece."""
    with served.use(OPERATOR) as generation:
        (word,) = [word for word, count in generation.document_frequencies(WORDS).items() if count]
        assert generation.document_frequencies([word]) == {word: DOCUMENTS}
        numbers = np.arange(generation.chunk_count, dtype=np.int32)
        texts = generation.contents(numbers)
        assert len(texts) == DOCUMENTS
        assert all(text.startswith(word) for text in texts.values())
        assert {chunk.content for chunk in generation.chunks(numbers).values()} == set(texts.values())
        assert len(generation.dense(np.eye(16, dtype=np.float32)[0], 5)) == 5
    return word


def open_files(folder: Path) -> set[str]:
    """Return the generation files that this process has open; each has its arrays beside it."""
    gc.collect()
    links = []
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        except FileNotFoundError:  # of the listing itself
            continue
    names = {Path(link.removesuffix(" (deleted)")).name for link in links if link.startswith(f"{folder}/")}
    generations = {name for name in names if name.endswith(".duckdb")}
    assert len(names) == 2 * len(generations), names
    return generations


def test_readers_never_fail_across_publications(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...]
) -> None:
    publish(files, built[0])
    served.refresh()
    stop = threading.Event()
    seen: list[list[str]] = [[] for _ in range(READERS)]

    def read(mine: list[str]) -> None:
        while not stop.wait(0.002):
            mine.append(word_of(served))

    swaps = 0
    with ThreadPoolExecutor(READERS) as pool:
        readers = [pool.submit(read, mine) for mine in seen]
        try:
            for number in range(1, PUBLICATIONS + 1):
                name = publish(files, built[number % len(built)])
                swaps += served.refresh()
                assert (served.name, served.problem) == (name, None)
                if number % 5 == 0:  # let readers meet this generation, then go on while they are at it
                    before = [len(mine) for mine in seen]
                    until(lambda before=before: any(len(mine) > old for mine, old in zip(seen, before, strict=True)))
        finally:
            stop.set()
        for reader in readers:
            reader.result()
    assert swaps == PUBLICATIONS
    assert sum(map(len, seen)) >= PUBLICATIONS / 5
    assert {word for mine in seen for word in mine} == set(WORDS)
    assert open_files(files.folder) == {f"{served.name}-000.duckdb"}, "old generations are closed"
    served.close()
    assert open_files(files.folder) == set()


def test_a_query_keeps_the_generation_that_it_began_with(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...]
) -> None:
    first = publish(files, built[0])
    with served.use(OPERATOR) as running:
        second = publish(files, built[1])
        assert served.refresh()
        with served.use(OPERATOR) as new:
            assert new.document_frequencies(["bee"]) == {"bee": DOCUMENTS}
        assert open_files(files.folder) == {f"{first}-000.duckdb", f"{second}-000.duckdb"}
        assert running.contents(np.array([0], np.int32)) == {0: "ant number 0"}
        assert served.is_used
    assert open_files(files.folder) == {f"{second}-000.duckdb"}, "closed when its last query ended"
    assert not served.is_used


def test_a_generation_that_is_replaced_and_removed_before_it_is_opened_fails_nothing(
    files: GenerationFiles, built: tuple[Path, ...]
) -> None:
    first = publish(files, built[0])

    class Overtaken(GenerationFiles):
        """A writer publishes and removes between the reading of the pointer and the opening of the file."""

        def open(self, generation: GenerationId, *arguments: Any) -> Any:
            if generation == first:
                publish(files, built[1])
                files.path(first).unlink()
            return super().open(generation, *arguments)

    served = ServedGeneration(Overtaken(files.folder))
    assert word_of(served) == "bee"
    assert served.name == files.current() != first
    served.close()


def test_nothing_is_swapped_without_a_publication(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...]
) -> None:
    publish(files, built[0])
    assert served.refresh()
    assert not served.refresh()
    with served.use(OPERATOR) as one:
        pass
    with served.use(OPERATOR) as other:
        assert one is other


def test_many_first_queries_open_one_generation(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...]
) -> None:
    publish(files, built[0])
    barrier = threading.Barrier(8)

    def first() -> int:
        barrier.wait()
        with served.use(OPERATOR) as generation:
            return id(generation)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: first(), range(8)))) == 1


def test_nothing_published_yet_says_what_to_do(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...]
) -> None:
    for _ in range(2):
        with pytest.raises(NoGenerationError, match="run `nornweave sync`"), served.use(OPERATOR):
            pass
    assert (served.refresh(), served.name, served.problem, dict(served.meta)) == (False, None, None, {})
    publish(files, built[0])
    assert word_of(served) == "ant", "found without a refresh"


def test_a_damaged_new_generation_leaves_the_old_one_serving(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...], caplog: pytest.LogCaptureFixture
) -> None:
    first = publish(files, built[0])
    served.refresh()
    second = publish(files, built[1])
    damage(files, second)
    for _ in range(3):
        assert not served.refresh()
    assert word_of(served) == "ant"
    assert served.problem is not None
    assert f"{second}-000.duckdb" in served.problem
    assert f"{first} answers instead" in served.problem
    assert len(caplog.records) == 1, "said once, not at every look"

    third = publish(files, built[2])
    assert served.refresh()
    assert (word_of(served), served.name, served.problem) == ("cat", third, None)


def test_a_generation_that_could_not_be_opened_is_tried_again_with_growing_pauses(
    files: GenerationFiles, built: tuple[Path, ...]
) -> None:
    clock = [100.0]
    served = ServedGeneration(files, now=lambda: clock[0])
    first = publish(files, built[0])
    assert served.refresh()
    second = publish(files, built[1])
    whole = segment_of(files, second).read_bytes()
    damage(files, second)
    tried = []
    for _ in range(100):
        before = served._opener.refused.retry_at if served._opener.refused else None
        assert not served.refresh()
        assert served._opener.refused
        if served._opener.refused.retry_at != before:
            tried.append(clock[0] - 100)
        clock[0] += 1
    assert tried == [0, 1, 3, 7, 15, 31, 63], "pauses of 1, 2, 4 … s"
    assert (served.name, served.published) == (first, second)
    assert served.behind_s > 0

    segment_of(files, second).write_bytes(whole)
    assert not served.refresh(), "not before its time"
    clock[0] += LONGEST_RETRY_S
    assert served.refresh()
    assert (word_of(served), served.name, served.problem, served.behind_s) == ("bee", second, None, 0)
    served.close()


def test_what_could_not_be_opened_at_first_answers_later(files: GenerationFiles, built: tuple[Path, ...]) -> None:
    clock = [0.0]
    served = ServedGeneration(files, now=lambda: clock[0])
    name = publish(files, built[0])
    place = files.path(name)
    aside = place.rename(files.folder / "aside")
    with pytest.raises(StoreError, match="cannot be read"):
        word_of(served)
    aside.rename(place)
    clock[0] += FIRST_RETRY_S
    assert word_of(served) == "ant"
    served.close()


def test_rolling_back_to_what_answers_settles_the_problem(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...]
) -> None:
    first = publish(files, built[0])
    served.refresh()
    damage(files, publish(files, built[1]))
    served.refresh()
    assert served.problem
    files.point_at(first)
    assert not served.refresh()
    assert served.problem is None


@pytest.mark.parametrize("gone", ["damaged", "missing", "truncated", "empty"])
def test_a_damaged_generation_at_start_falls_back_to_the_newest_that_can_be_read(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...], gone: str
) -> None:
    publish(files, built[0])
    second = publish(files, built[1])
    damage(files, publish(files, built[2], prune=False))
    last = publish(files, built[3], prune=False)
    file = segment_of(files, last)
    if gone == "damaged":
        damage(files, last)
    elif gone == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[: 100_000 if gone == "truncated" else 0])
    assert word_of(served) == "bee"
    assert served.name == second
    assert served.problem is not None
    assert f"{last}-000.duckdb" in served.problem
    assert f"{second} answers instead" in served.problem
    assert not served.refresh(), "not tried again and again"


def test_nothing_readable_is_an_error_that_names_the_file(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...]
) -> None:
    name = publish(files, built[0])
    damage(files, name)
    for _ in range(2):
        with pytest.raises(StoreError, match=rf"{name}-000\.duckdb") as raised, served.use(OPERATOR):
            pass
        assert not isinstance(raised.value, NoGenerationError)
    publish(files, built[1])
    assert word_of(served) == "bee", "the next publication answers"


@pytest.mark.parametrize("pointer", [b"\xff\xfe", b"", b"\n", b"gen-000009\n", b"../../etc/passwd\n"])
def test_a_damaged_pointer_leaves_the_generation_serving(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...], pointer: bytes
) -> None:
    name = publish(files, built[0])
    served.refresh()
    (files.folder / "CURRENT").write_bytes(pointer)
    assert not served.refresh()
    assert word_of(served) == "ant"
    assert served.problem
    files.point_at(name)
    served.refresh()
    assert (word_of(served), served.problem) == ("ant", None)


@pytest.mark.parametrize("pointer", [b"\xff\xfe", b"", b"\n", b"../../etc/passwd\n"])
def test_a_damaged_pointer_at_start_is_named(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...], pointer: bytes
) -> None:
    publish(files, built[0])
    (files.folder / "CURRENT").write_bytes(pointer)
    try:
        word_of(served)
    except StoreError as error:
        said = str(error)
    else:
        said = str(served.problem)
    assert "CURRENT" in said, "what has to be mended is the pointer"


def test_closing_refuses_new_queries_and_lets_the_running_ones_end(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...]
) -> None:
    publish(files, built[0])
    with served.use(OPERATOR) as running:
        served.close()
        assert served.is_used
        with pytest.raises(StoreError, match="shutting down") as raised, served.use(OPERATOR):
            pass
        assert not isinstance(raised.value, NoGenerationError)
        assert running.contents(np.array([3], np.int32)) == {3: "ant number 3"}
        assert open_files(files.folder)
    assert not open_files(files.folder)
    publish(files, built[1])
    assert not served.refresh(), "closed for good"
    served.close()


def test_a_query_that_fails_gives_its_generation_back(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...]
) -> None:
    publish(files, built[0])
    with pytest.raises(ZeroDivisionError), served.use(OPERATOR):
        raise ZeroDivisionError
    assert not served.is_used
    second = publish(files, built[1])
    served.refresh()
    assert open_files(files.folder) == {f"{second}-000.duckdb"}


def test_generations_are_counted_as_numbers(
    files: GenerationFiles, served: ServedGeneration, built: tuple[Path, ...]
) -> None:
    """The millionth generation has a longer name, which sorts before that of its predecessor as text."""
    files.raise_floor(999_998)
    assert publish(files, built[0]) == "gen-999999"
    damage(files, publish(files, built[1]))
    assert files.current() == "gen-1000000"
    assert word_of(served) == "ant"
