"""Bad input gets a clear line that names document, reason and what to do; the rest is ingested."""

from __future__ import annotations

import json
from pathlib import Path

import pymupdf
import pytest
from support import published_texts

from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions, SyncReport
from nornweave.ingest.wiring import domain_parts

HASHED = {"embedding": {"model": "hash:64", "dimensions": 64}}


def configured(folder: Path, **source: str) -> Settings:
    """Return settings of one source ``s`` at ``folder/files`` with an encoder that needs no model."""
    config = {
        "data_dir": "var",
        "sources": [{"id": "s", "path": "files", **source}],
        "domains": {domain.value: HASHED for domain in Domain},
    }
    (folder / "nornweave.yaml").write_text(json.dumps(config), encoding="utf-8")
    return load_settings(folder / "nornweave.yaml", {})


def ingest(settings: Settings) -> tuple[SyncReport, dict[str, str]]:
    """Sync the one domain; return the report and what was published."""
    parts = domain_parts(settings, settings.served_domains[0])
    report = run(parts, SyncOptions(wait_s=0))
    return report, published_texts(parts)


def pdf(text: str = "", *, password: str = "") -> bytes:
    """Return a PDF of one page; without text it holds an image, as a scan does."""
    with pymupdf.open() as document:
        page = document.new_page()
        if text:
            page.insert_text((72, 72), text)
        else:
            grey = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 40, 40))
            grey.clear_with(200)  # what lies in fresh memory may look like text
            page.insert_image(page.rect, pixmap=grey)
        locked = {"encryption": pymupdf.PDF_ENCRYPT_AES_256, "user_pw": password} if password else {}
        return bytes(document.tobytes(**locked))


BAD_RESEARCH = {
    "encrypted.pdf": (pdf("secret", password="x"), ["encrypted", "password"]),
    "scanned.pdf": (pdf(), ["no text layer", "OCR"]),
    "damaged.pdf": (b"%PDF-1.7\n garbage", ["broken PDF"]),
    "empty.md": (b"", ["empty"]),
    "blank.md": (b" \n\t\n", ["empty"]),
    "huge.md": (b"# Big\n" + b"word " * 2_200_000, ["too large", "10,485,760"]),
    "picture.md": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, ["binary"]),
    "broken.json": (b'{"items": [', ["line 1"]),
    "other.json": (b'{"colour": "blue"}', ["title", "expected"]),
}


def test_research_documents_that_cannot_be_read(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for name, (content, _) in BAD_RESEARCH.items():
        (files / name).write_bytes(content)
    (files / "good.md").write_text("# Good\n\nThis one is readable.")
    (files / "good.pdf").write_bytes(pdf("A readable page about retries."))

    report, texts = ingest(configured(tmp_path, domain="research", type="files"))

    reasons = {failure.path: failure.reason for failure in report.failed}
    assert set(reasons) == set(BAD_RESEARCH)
    for name, (_, words) in BAD_RESEARCH.items():
        assert all(word in reasons[name] for word in words), f"{name}: {reasons[name]}"
        assert len(reasons[name]) < 400
    assert set(texts) == {"s/good.md", "s/good.pdf"}


def test_text_in_other_encodings_is_read(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    text = "# Größe\n\nDie Zahlung wurde über die Brücke geführt, weil Schmöker müde wären.\n" * 5
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        (files / f"{encoding}.md").write_bytes(text.encode(encoding))
    report, texts = ingest(configured(tmp_path, domain="documentation", type="files"))
    assert report.failed == ()
    assert all("Größe" in read and "Brücke" in read for read in texts.values())
    assert len(texts) == 3


def test_code_that_is_broken_or_deeply_nested_is_ingested_all_the_same(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "broken.py").write_text("def half(:\n    return (1 +\nclass\n\ndef whole():\n    return 'kept'\n")
    (files / "nested.py").write_text("x = " + "(" * 20_000 + "1" + ")" * 20_000)
    (files / "nested.json").write_text("[" * 50_000 + "]" * 50_000)
    (files / "empty.py").write_text("")
    (files / "binary.py").write_bytes(bytes(range(256)) * 50)
    report, texts = ingest(configured(tmp_path, domain="code", type="files"))
    assert [failure.path for failure in report.failed] == ["binary.py"]
    assert "binary" in report.failed[0].reason
    assert "kept" in texts["s/broken.py"]
    assert "s/nested.py" in texts
    assert ("empty.py", "empty") in {(skip.path, skip.reason) for skip in report.skipped}


def test_links_that_loop_or_leave_the_source_are_left_out(tmp_path: Path) -> None:
    files = tmp_path / "files"
    (files / "sub").mkdir(parents=True)
    (files / "sub" / "loop").symlink_to(files)
    (tmp_path / "secret.md").write_text("# Secret\n\npassword")
    (files / "leak.md").symlink_to(tmp_path / "secret.md")
    (files / "good.md").write_text("# Good\n\ntext")
    report, texts = ingest(configured(tmp_path, domain="documentation", type="files"))
    assert set(texts) == {"s/good.md"}
    assert "leak.md" in {skip.path for skip in report.skipped}


def test_one_broken_day_of_a_slack_export(tmp_path: Path) -> None:
    channel = tmp_path / "files" / "general"
    channel.mkdir(parents=True)
    (tmp_path / "files" / "users.json").write_text('[{"id": "U1", "name": "alice"}]')
    (tmp_path / "files" / "channels.json").write_text('[{"id": "C1", "name": "general"}]')
    message = {"type": "message", "user": "U1", "text": "deployed", "ts": "1768572120.000100"}
    (channel / "2026-01-16.json").write_text(json.dumps([message]))
    (channel / "2026-01-17.json").write_text('[{"type": "message", ')
    report, texts = ingest(configured(tmp_path, domain="conversations", type="slack"))
    assert [failure.path for failure in report.failed] == ["general/2026-01-17.json"]
    assert "line 1" in report.failed[0].reason
    assert texts == {"s/general/2026-01-16.json": "alice: deployed"}


def test_a_cue_file_without_times(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "bad.vtt").write_text("WEBVTT\n\nalice: hello\n\nbob: hi\n")
    (files / "good.vtt").write_text("WEBVTT\n\n00:01.000 --> 00:02.000\n<v alice>hello\n")
    report, texts = ingest(configured(tmp_path, domain="conversations", type="transcripts"))
    assert [failure.path for failure in report.failed] == ["bad.vtt"]
    assert "-->" in report.failed[0].reason
    assert set(texts) == {"s/good.vtt"}


@pytest.mark.parametrize(
    ("domain", "kind"),
    [("code", "files"), ("code", "git"), ("conversations", "slack"), ("conversations", "github"),
     ("conversations", "transcripts"), ("conversations", "messages"), ("research", "stackexchange")],
)  # fmt: skip
def test_a_missing_source_is_named_and_deletes_nothing(tmp_path: Path, domain: str, kind: str) -> None:
    settings = configured(tmp_path, domain=domain, type=kind)
    report = run(domain_parts(settings, Domain(domain)), SyncOptions(wait_s=0))
    assert str(tmp_path / "files") in report.unavailable["s"]
    assert (report.removed, report.published) == (0, False)
