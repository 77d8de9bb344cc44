"""A damaged generation is named before DuckDB opens it, and the last good one answers."""

import os
import shutil
from pathlib import Path

import pytest
from support import MemorySource, memory_parts, published_texts, sync

from nornweave.core.access import OPERATOR
from nornweave.core.errors import StoreError
from nornweave.index.corpus import DuckDBStore
from nornweave.index.fact_pairs import read_fact_pairs
from nornweave.index.generations import checksums
from nornweave.index.generations.checksums import check, checksum_file
from nornweave.index.generations.serving import ServedGeneration
from nornweave.index.searching.generation_file import DataFile, GenerationFile
from nornweave.ingest.records import DomainParts


@pytest.fixture
def source() -> MemorySource:
    return written()


def written() -> MemorySource:
    source = MemorySource()
    for text in ("alpha", "beta"):
        source.write("a.txt", text)
    return source


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Publish two generations."""
    folder, source = tmp_path_factory.mktemp("template"), MemorySource()
    for text in ("alpha", "beta"):
        source.write("a.txt", text)
        sync(memory_parts(folder, source))
    return folder


@pytest.fixture
def parts(template: Path, tmp_path: Path, source: MemorySource) -> DomainParts:
    return memory_parts(Path(shutil.copytree(template, tmp_path / "domain")), source)


def published(parts: DomainParts) -> Path:
    assert isinstance(parts.store, DuckDBStore)
    current = parts.store.current()
    assert current is not None
    return parts.store.files.data_files(current)[0].path


def flip(file: Path, place: int) -> None:
    """Change one bit; size and modification time stay, as when a disk goes bad."""
    before = file.stat()
    with file.open("r+b") as stream:
        stream.seek(place)
        (byte,) = stream.read(1)
        stream.seek(place)
        stream.write(bytes([byte ^ 1]))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("share", [0, 0.02, 0.5, 0.999])
def test_one_changed_bit_is_found_wherever_it_is(parts: DomainParts, share: float) -> None:
    file = published(parts)
    check(file)
    flip(file, int(share * file.stat().st_size))
    for opens in (GenerationFile, lambda file: read_fact_pairs({"documentation": [DataFile(file)]})):
        with pytest.raises(StoreError, match=r"gen-000002-000\.duckdb: is damaged: its checksum is .* roll back"):
            opens(file)


def test_a_cut_file_is_found_without_reading_it(parts: DomainParts) -> None:
    file = published(parts)
    size = file.stat().st_size
    os.truncate(file, size - 1)
    with pytest.raises(StoreError, match=f"it has {size - 1} bytes, {size} were published"):
        check(file)


def test_a_damaged_checksum_is_named(parts: DomainParts) -> None:
    file = published(parts)
    checksum_file(file).write_bytes(b"\xff\x00")
    with pytest.raises(StoreError, match=r"gen-000002-000\.duckdb\.crc32 holds .* expected a size and a checksum"):
        check(file)


def test_a_generation_of_an_earlier_version_has_no_checksum_and_is_served(parts: DomainParts) -> None:
    checksum_file(published(parts)).unlink()
    assert published_texts(parts) == {"memory/a.txt": "beta"}


def test_a_file_is_read_once_per_process(parts: DomainParts, monkeypatch: pytest.MonkeyPatch) -> None:
    file, read = published(parts), []
    measure = checksums._measure
    monkeypatch.setattr(checksums, "_measure", lambda file: read.append(file) or measure(file))
    for _ in range(3):
        check(file)
    flip(file, 100)
    for _ in range(3):
        with pytest.raises(StoreError):
            check(file)
    assert len(read) == 2


def test_the_last_good_generation_answers_until_the_next_sync_heals(parts: DomainParts) -> None:
    assert isinstance(parts.store, DuckDBStore)
    file = published(parts)
    flip(file, file.stat().st_size // 2)
    served = ServedGeneration(parts.store.files)
    with served.use(OPERATOR) as generation:
        assert list(generation.contents(range(generation.chunk_count)).values()) == ["alpha"]
    assert served.problem is not None
    assert "gen-000002-000.duckdb: is damaged" in served.problem
    assert "gen-000001 answers instead" in served.problem

    report = sync(parts)

    assert (report.changed, report.published, report.generation) == (0, True, "gen-000003")
    assert served.refresh()
    assert (served.name, served.problem) == ("gen-000003", None)
    served.close()
    assert not sync(parts).published


def test_checksums_go_with_their_generations(parts: DomainParts, source: MemorySource) -> None:
    for text in "cdefg":
        source.write("a.txt", text)
        sync(parts)
    generations = {file.name for file in published(parts).parent.iterdir()} - {"CURRENT", "HISTORY"}
    kept = {f"gen-{number:06d}{ending}" for number in (5, 6, 7) for ending in (".json", "-000.duckdb")}
    arrays = {f"{name}.arrays" for name in kept if name.endswith(".duckdb")}
    assert generations == kept | {f"{name}.crc32" for name in kept} | arrays
