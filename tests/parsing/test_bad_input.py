"""Bad input gets a clear line that names document, reason and what to do; the rest is ingested."""

import json
from pathlib import Path

import pymupdf
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
