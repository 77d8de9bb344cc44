"""The example corpus holds what its README promises: formats, dates, planted material, a reproducible paper."""

import ast
import html
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pymupdf
import pytest
import yaml
from bs4 import BeautifulSoup

EXAMPLES = Path(__file__).parents[2] / "examples"
CORPUS = EXAMPLES / "payments"
LANGUAGES = {".c", ".cpp", ".cs", ".go", ".java", ".js", ".kt", ".php", ".py", ".rb", ".rs", ".swift", ".ts"}
# Sidecar → the root of its source and the part of it that is listed.
SIDECARS = {
    "code.metadata.yaml": ("code", "**/*"),
    "documentation.metadata.yaml": (".", "docs/**/*"),
    "research.metadata.yaml": ("research", "**/*"),
}
PLANTED: list[dict[str, Any]] = yaml.safe_load((EXAMPLES / "planted.yaml").read_text(encoding="utf-8"))


def files(folder: Path, pattern: str = "**/*") -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_file() and "__pycache__" not in path.parts)


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from strings(member)
    elif isinstance(value, list):
        for member in value:
            yield from strings(member)


def pdf_text(path: Path) -> str:
    with pymupdf.open(path) as document:
        return "".join(page.get_text() for page in document)


def markup_text(markup: str) -> str:
    return BeautifulSoup(markup, "html.parser").get_text()


@cache
def text_of(path: Path) -> str:
    """What the document says, white space collapsed."""
    suffix = path.suffix
    if suffix == ".pdf":
        text = re.sub(r"-\n", "", pdf_text(path))
    elif suffix == ".html":
        text = markup_text(path.read_text(encoding="utf-8").replace("><", "> <"))
    elif suffix == ".json" and path.parent.name == "research":
        text = "\n".join(markup_text(each) if "<" in each else each for each in strings(load(path)))
    elif suffix == ".json":
        text = html.unescape("\n".join(strings(load(path))))
    elif suffix == ".jsonl":
        text = "\n".join(
            each for line in path.read_text(encoding="utf-8").splitlines() for each in strings(json.loads(line))
        )
    else:
        text = path.read_text(encoding="utf-8")
    return collapse(text)


def collapse(text: str) -> str:
    return " ".join(text.split())


def domain_of(path: str) -> str:
    top = path.split("/")[0]
    return {"code": "code", "docs": "documentation", "research": "research"}.get(top, "conversations")


def test_every_format_is_there() -> None:
    suffixes = {
        folder: {p.suffix for p in files(CORPUS / folder)} for folder in ("code", "docs", "transcripts", "messages")
    }
    assert suffixes["code"] >= LANGUAGES
    assert ".yaml" in suffixes["code"]
    assert (CORPUS / "code" / "Dockerfile").is_file()
    assert suffixes["docs"] == {".md", ".rst", ".html", ".txt", ".docx", ".xlsx", ".pptx", ".epub", ".eml"}
    assert suffixes["transcripts"] == {".vtt", ".srt", ".txt"}
    assert suffixes["messages"] == {".log", ".jsonl"}
    assert {p.suffix for p in files(CORPUS / "research")} == {".md", ".html", ".pdf", ".ipynb", ".json"}


@pytest.mark.parametrize("name", SIDECARS)
def test_every_file_has_a_date_and_every_date_a_file(name: str) -> None:
    root, pattern = SIDECARS[name]
    sidecar = yaml.safe_load((CORPUS / name).read_text(encoding="utf-8"))
    listed = {path.relative_to(CORPUS / root).as_posix() for path in files(CORPUS / root, pattern)}
    assert set(sidecar) == listed
    for path, record in sidecar.items():
        moment = datetime.fromisoformat(record["updated_at"])
        assert moment.tzinfo is not None, path
        assert datetime(2025, 1, 1, tzinfo=UTC) < moment < datetime(2026, 2, 1, tzinfo=UTC), path


def test_the_worked_example_stands_where_its_citations_point() -> None:
    code = yaml.safe_load((CORPUS / "code.metadata.yaml").read_text(encoding="utf-8"))
    docs = yaml.safe_load((CORPUS / "documentation.metadata.yaml").read_text(encoding="utf-8"))
    dates = {path: record["updated_at"][:10] for path, record in {**code, **docs}.items()}
    assert dates["src/payments/handlers.py"] == "2026-01-20"
    assert dates["src/payments/validator.py"] == "2026-01-18"
    assert dates["src/payments/retry.py"] == "2026-01-10"
    assert dates["docs/api/payments.md"] == "2025-12-01"

    source = (CORPUS / "code/src/payments/handlers.py").read_text(encoding="utf-8")
    handler = next(node for node in ast.parse(source).body if getattr(node, "name", "") == "handle_payment_error")
    assert (handler.lineno, handler.end_lineno) == (42, 67)
    body = ast.get_source_segment(source, handler) or ""
    assert body.startswith("def handle_payment_error(e: PaymentError) -> Response:")
    assert "JSONResponse(\n        status_code=422," in body

    validator = text_of(CORPUS / "code/src/payments/validator.py")
    assert "class PaymentValidator:" in validator
    assert 'if not req.amount: raise PaymentError("missing amount"' in validator
    retry = (CORPUS / "code/src/payments/retry.py").read_text(encoding="utf-8")
    assert retry.startswith("# Payment retry logic with exponential backoff\n")
    page = (CORPUS / "docs/api/payments.md").read_text(encoding="utf-8")
    handling = "The payment module returns HTTP 400 for malformed requests and HTTP 500 for downstream failures."
    overview = "Handles all payment processing including validation, authorization, and settlement."
    assert f"## Error Handling\n\n{handling}\n" in page
    assert f"## Payment Module Overview\n\n{overview}\n" in page


def test_enough_is_planted() -> None:
    assert {tuple(entry) for entry in PLANTED} == {("kind", "entity", "attribute", "sides", "note")}
    kinds = Counter(entry["kind"] for entry in PLANTED)
    assert set(kinds) == {"duplicate", "conflict", "hard_negative"}
    across = Counter(
        entry["kind"] for entry in PLANTED if len({domain_of(side["path"]) for side in entry["sides"]}) > 1
    )
    assert across["duplicate"] >= 6
    assert across["conflict"] == kinds["conflict"] >= 10
    assert kinds["hard_negative"] >= 10


@pytest.mark.parametrize("entry", PLANTED, ids=lambda entry: f"{entry['kind']}-{entry['entity']}-{entry['attribute']}")
def test_quotes_stand_in_their_files(entry: dict[str, Any]) -> None:
    assert len(entry["sides"]) >= 2
    for side in entry["sides"]:
        assert collapse(side["quote"]) in text_of(CORPUS / side["path"]), side


@pytest.mark.parametrize("entry", [e for e in PLANTED if e["kind"] == "duplicate"], ids=lambda e: e["entity"])
def test_duplicates_say_the_same(entry: dict[str, Any]) -> None:
    assert len({collapse(side["quote"]) for side in entry["sides"]}) == 1
    assert len({side["path"] for side in entry["sides"]}) == len(entry["sides"])


def test_the_paper_is_small_and_comes_out_of_its_script_again(tmp_path: Path) -> None:
    committed = CORPUS / "research/retry-storms.pdf"
    again = tmp_path / "paper.pdf"
    subprocess.run([sys.executable, EXAMPLES / "make_paper.py", again], check=True)
    assert pdf_text(again) == pdf_text(committed)
    assert committed.stat().st_size < 100_000
    text = text_of(committed)
    for part in ("Abstract", "1 Introduction", "4.2 Duplicate authorizations", "References", "Table 1:"):
        assert part in text
    with pymupdf.open(committed) as document:
        assert 2 <= len(document) <= 3
        lefts = [block[0] for block in document[0].get_text("blocks")]
    assert any(left < 100 for left in lefts)
    assert any(left > 290 for left in lefts), "the paper must have two columns"


def test_the_office_files_come_out_of_their_script_again(tmp_path: Path) -> None:
    subprocess.run([sys.executable, EXAMPLES / "make_office.py", tmp_path], check=True)
    made = files(tmp_path)
    assert len(made) == 6
    for file in made:
        assert file.read_bytes() == (CORPUS / file.relative_to(tmp_path)).read_bytes(), file.name
