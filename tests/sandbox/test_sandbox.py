"""Processes that read documents: what they cannot do to their parent."""

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
import sandbox_tasks
from support import memory_parts, published_texts, sync

from nornweave.connect.files.source import FilesSource
from nornweave.core.errors import DocumentError, DocumentSkipped, ReaderLostError, TransientDocumentError
from nornweave.core.process import RETIRE_BYTES
from nornweave.core.sandbox import Pool
from nornweave.core.sandbox.frames import function_at
from nornweave.core.types import Domain, Entry, SourceId
from nornweave.read.web_page import read_web_page


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("NORNWEAVE_SERVICE_TOKEN", "secret")
    pool = Pool("sandbox_tasks")
    yield pool
    pool.close()


def test_a_task_gets_values_and_bytes_and_its_process_is_used_again(pool: Pool) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    first = pool.run(
        sandbox_tasks.echo, {"text": "Ünï\ud800", "entry": Entry(path="a", gate="", updated_at=moment)}, b"123", cpu_s=5
    )
    assert first["text"] == "Ünï\ud800"
    assert (first["entry"]["path"], first["entry"]["updated_at"], first["size"]) == ("a", moment.isoformat(), 3)
    assert pool.run(sandbox_tasks.echo, {}, b"", cpu_s=5)["pid"] == first["pid"] != os.getpid()


def test_a_process_is_used_again_however_much_memory_its_parent_holds(pool: Pool) -> None:
    held = b"x" * (RETIRE_BYTES + 1)
    first = pool.run(sandbox_tasks.echo, {}, b"", cpu_s=5)["pid"]
    assert pool.run(sandbox_tasks.echo, {}, b"", cpu_s=5)["pid"] == first
    del held


@pytest.mark.parametrize(("task", "cpu_s", "reason"), [
    ("loop", 1, "too slow: it takes more than 1 s"), ("sleep", 0.05, "too slow"),
    ("fill", 20, "more than 2 GiB of memory"), ("crash", 5, "SIGSEGV"), ("lie", 5, "at most 536,870,912 are taken"),
])  # fmt: skip
def test_what_a_task_does_to_its_process_is_one_failure_and_the_next_task_runs(
    pool: Pool, task: str, cpu_s: float, reason: str
) -> None:
    before = pool.run(sandbox_tasks.echo, {}, b"", cpu_s=5)["pid"]
    with pytest.raises(ReaderLostError, match=reason):
        pool.run(getattr(sandbox_tasks, task), {}, b"", cpu_s=cpu_s)
    assert pool.run(sandbox_tasks.echo, {}, b"", cpu_s=5)["pid"] != before
    assert not psutil.pid_exists(before)


def test_what_a_task_raises_is_raised_and_a_defect_is_named(pool: Pool) -> None:
    with pytest.raises(DocumentSkipped, match="empty; fill it"):
        pool.run(sandbox_tasks.fail, {"skipped": True}, b"", cpu_s=5)
    with pytest.raises(DocumentError, match="empty; fill it"):
        pool.run(sandbox_tasks.fail, {"skipped": False}, b"", cpu_s=5)
    with pytest.raises(DocumentError, match=r"a defect of the parser \(KeyError: 'nobody thought of this'\)"):
        pool.run(sandbox_tasks.defect, {}, b"", cpu_s=5)


def test_a_task_writes_no_file_and_sees_no_secret(pool: Pool, tmp_path: Path) -> None:
    assert pool.run(sandbox_tasks.secrets, {}, b"", cpu_s=5) == []
    with pytest.raises(DocumentError, match=r"too large|File too large"):
        pool.run(sandbox_tasks.write, {"path": str(tmp_path / "a")}, b"", cpu_s=5)
    assert not (tmp_path / "a").exists() or not (tmp_path / "a").read_bytes()


def bomb(megabytes: int) -> bytes:
    """Return a PDF of a few kilobytes whose one page holds so many megabytes of operators, deflated twice."""
    operators = b"BT /F 1 Tf (a) Tj ET\n" * 50_000
    inner = zlib.compressobj(9)
    once = b"".join(inner.compress(operators) for _ in range(megabytes * 1_000_000 // len(operators))) + inner.flush()
    stream = zlib.compress(once, 9)
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Filter[/FlateDecode/FlateDecode]/Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    raw = b"%PDF-1.4\n"
    for number, content in enumerate(objects, start=1):
        raw += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    return raw + b"trailer<</Size 6/Root 1 0 R>>\n%%EOF\n"


@pytest.mark.slow
def test_a_pdf_bomb_fails_in_seconds_and_is_not_read_again_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "bomb.pdf").write_bytes(bomb(100))
    (folder / "note.md").write_text("# Note\n\nIt goes on.", encoding="utf-8")
    assert (folder / "bomb.pdf").stat().st_size < 4_000
    source = FilesSource(SourceId("papers"), Domain.RESEARCH, folder)
    parts = replace(memory_parts(tmp_path / "store"), domain=Domain.RESEARCH, sources=(source,))

    with monkeypatch.context() as patched:
        patched.setattr("nornweave.read.parsed.PDF_SECONDS_AT_LEAST", 1.0)
        report = sync(parts)
    (failure,) = report.failed
    assert failure.path == "bomb.pdf"
    assert "too slow: it takes more than 1 s" in failure.reason
    assert list(published_texts(parts)) == ["papers/note.md"]

    os.utime(folder / "bomb.pdf", ns=(1, 1))  # touched: the gate changes, the content does not
    with monkeypatch.context() as patched:
        patched.setattr(FilesSource, "parse", lambda *_: pytest.fail("it is read again"))
        assert sync(parts).failed == (failure,)
    (folder / "bomb.pdf").write_bytes(bomb(1))
    assert "too slow" not in "".join(failed.reason for failed in sync(parts).failed)


@pytest.mark.parametrize("function", [lambda values, raw: None, Path.exists, print, Pool.run])
def test_only_functions_of_modules_are_sent(pool: Pool, function: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="expected a function of a module"):
        pool.run(function, {}, b"", cpu_s=5)


@pytest.mark.parametrize(
    "address",
    ["os:system", "nornweave.core.errors:DocumentError", "nornweave.core.sandbox.child:receive", "nornweave:x.y", ""],
)
def test_a_process_runs_only_what_a_module_of_the_package_defines(address: str) -> None:
    with pytest.raises(ValueError, match="is not a function of nornweave"):
        function_at(address)


def test_a_function_of_another_package_is_not_run(pool: Pool) -> None:
    with pytest.raises(TransientDocumentError, match="what reads it cannot be loaded"):
        pool.run(read_web_page, {"charset": None}, b"<p>a", cpu_s=5)
