"""PDFs drawn here with PyMuPDF, so that every line's place is known, and read back by both libraries."""

import base64
import os
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from growth import assert_subquadratic
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nornweave.core.errors import DocumentError
from nornweave.core.text.spans import KnownStarts, TokenIndex
from nornweave.core.types import Domain, Entry, SourceId
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.read.chunking.chunker import Chunker
from nornweave.read.file import read_document
from nornweave.read.parsed import Parsed
from nornweave.read.pdf import document as ocr
from nornweave.read.pdf.document import parse_pdf
from nornweave.read.pdf.layout import read_page
from nornweave.read.pdf.paragraphs import Hyphens
from nornweave.read.pdf.picture import page_picture
from nornweave.read.pdf.port import VARIABLE, GlyphLine, GlyphRun, PageGlyphs


@pytest.fixture(autouse=True, scope="module", params=["pymupdf", "pdfium"])
def library(request: pytest.FixtureRequest) -> Iterator[str]:
    """Read with each library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, request.param)
        yield request.param


GOLDEN = Path(__file__).parents[1] / "golden" / "papers"

LEFT = [
    ("bold", "1 Introduction"),
    ("", "Retrieval over several domains is hard to mea-"),
    ("", "sure. Each domain has its own words, and the"),
    ("", "same question finds different answers there. A"),
    ("", "state-of-the-"),
    ("", "art system merges four rankings into one list."),
    ("gap", "We compare two ways of merging in one experi-"),
    ("", "ment, with the same encoder for all domains and"),
    ("", "the same number of results from each of them."),
    ("bold", "2 Method"),
    ("bold", "2.1 Rank fusion"),
    ("", "Reciprocal rank fusion adds one over the rank"),
    ("", "plus sixty for every list that holds the item,"),
    ("", "and sorts by the sum, the best item first; the"),
]
RIGHT = [
    ("", "scores of the lists themselves play no part. It"),
    ("", "needs no training and no scale."),
    ("bold", "2.2 Convex combination"),
    ("", "Scores are brought to one scale by the floor of"),
    ("", "each source and the maximum of the query, then"),
    ("", "added with weights that sum up to one."),
    ("bold", "3 Results"),
    ("", "The convex combination won on five of six sets."),
    ("", "Set   RRF   Convex"),
    ("", "A     0.519   0.607   0.610"),
    ("", "B     0.557   0.570   0.575"),
    ("", "Table 1: nDCG at ten, higher is better."),
    ("bold", "References"),
    ("", "Gordon Cormack. 2009. Reciprocal rank fusion"),
    ("", "outperforms Condorcet. In SIGIR."),
    ("gap", "Sebastian Bruch. 2023. An analysis of fusion"),
    ("", "functions for hybrid retrieval. In TOIS."),
]


def _column(page: pymupdf.Page, x: float, y: float, lines: list[tuple[str, str]]) -> None:
    for style, text in lines:
        y += {"bold": 22, "gap": 20}.get(style, 12)
        page.insert_text(
            (x, y), text, fontname="tibo" if style == "bold" else "tiro", fontsize=11 if style == "bold" else 10
        )


def paper() -> pymupdf.Document:
    """Two pages, two columns, title and authors over both, headers and page numbers."""
    document = pymupdf.open()
    for number in (1, 2, 3):
        page = document.new_page(width=595, height=842)
        page.insert_text((72, 40), "Journal of Tests, Volume 7", fontname="tiit", fontsize=9)
        page.insert_text((290, 815), str(number), fontname="tiro", fontsize=10)
    first = document[0]
    first.insert_text((90, 90), "Merging Rankings From Several Domains", fontname="tibo", fontsize=20)
    first.insert_text((150, 115), "Ada Lovelace", fontname="tiro", fontsize=12)
    first.insert_text((330, 115), "Karen Spärck Jones", fontname="tiro", fontsize=12)
    first.insert_text((230, 130), "University of Somewhere", fontname="tiit", fontsize=10)
    first.insert_text((275, 160), "Abstract", fontname="tibo", fontsize=11)
    for line, text in enumerate(
        [
            "We merge rankings of code, documents, conversations and papers. One calibrated scale keeps",
            "what is irrelevant at the bottom, where scaling each ranking for itself lifts it to the top.",
        ]
    ):
        first.insert_text((90, 175 + 12 * line), text, fontname="tiro", fontsize=10)
    first.insert_text((20, 600), "arXiv:2401.01234v2 [cs.IR] 3 Jan 2024", fontname="tiro", fontsize=14, rotate=90)
    _column(first, 72, 220, LEFT)
    _column(first, 310, 220, RIGHT[:6])
    _column(document[1], 72, 60, RIGHT[6:12])
    _column(document[1], 310, 60, RIGHT[12:])
    document[2].insert_text((72, 200), "Appendix A Details", fontname="tibo", fontsize=11)
    document[2].insert_text((72, 220), "Nothing else to add here, except this.", fontname="tiro", fontsize=10)
    return document


def _render(parsed: Parsed) -> str:
    lines = [f"{key}: {value}" for key, value in sorted(parsed.metadata.items())]
    lines += [f"page_starts: {parsed.page_starts}", f"url: {parsed.url}"]
    for section in parsed.sections:
        page = bisect_right(parsed.page_starts, section.span.start)
        lines.append(f"=== level {section.level}, {section.kind}, page {page}: {section.heading}")
        lines.append(parsed.text[section.span.start : section.span.end].rstrip())
    return "\n".join(lines) + "\n"


def _assert_tiled(parsed: Parsed) -> None:
    end = 0
    for section in parsed.sections:
        assert section.span.start == end
        assert section.span.end > end
        end = section.span.end
    assert end == len(parsed.text)
    assert list(parsed.page_starts) == sorted(parsed.page_starts)
    assert parsed.page_starts[0] == 0


def test_a_page_is_drawn_with_the_lines_of_a_passage_marked() -> None:
    document = paper()
    raw = document.tobytes()
    text = "is hard to measure. Each domain has its own words, and the same question finds different answers there. A"
    said = {"page": 1, "text": f"Retrieval over several domains {text}"}
    drawn = page_picture(said, raw)
    assert drawn is not None
    picture = pymupdf.Pixmap(base64.b64decode(drawn))
    scale = picture.width / 595
    yellow = {
        (int(x / scale / 300), round(y / scale))
        for y in range(picture.height)
        for x in range(0, picture.width, 3)
        if picture.pixel(x, y) == (255, 255, 153)
    }
    # The first three lines of the left column below its heading; their baselines are at 254, 266 and 278.
    assert {column for column, _ in yellow} == {0} and {y for _, y in yellow} <= set(range(243, 283))
    assert {250, 262, 274} <= {y for _, y in yellow}
    for page, text in ((1, "Of another file altogether"), (4, said["text"]), (0, said["text"])):
        assert page_picture({"page": page, "text": text}, raw) is None
    document[0].set_rotation(90)
    assert page_picture(said, document.tobytes()) is None, "its lines are elsewhere"
    with pytest.raises(DocumentError):
        page_picture(said, raw[:400])


def test_paper_reads_as_in_the_golden_file() -> None:
    assert _render(parse_pdf(paper().tobytes())) == (GOLDEN / "two_columns.txt").read_text(encoding="utf-8")


def test_declared_properties_stand_in() -> None:
    document = pymupdf.open()
    document.new_page().insert_textbox(pymupdf.Rect(72, 72, 500, 700), "Plain words, no title. " * 40, fontsize=10)
    document.set_metadata(
        {"author": "A. Writer; B. Writer", "keywords": "rank, fusion", "creationDate": "D:20230405101112+02'00'"}
    )
    parsed = parse_pdf(document.tobytes())
    assert parsed.metadata["authors"] == ("A. Writer", "B. Writer")
    assert parsed.metadata["tags"] == ("rank", "fusion")
    assert parsed.metadata["publication_date"] == "2023-04-05"
    assert parsed.updated_at is not None
    assert parsed.updated_at.isoformat() == "2023-04-05T08:11:12+00:00"
    assert parsed.metadata["source_type"] == "paper"


def test_rotated_page_reads_like_an_upright_one() -> None:
    document = paper()
    upright = parse_pdf(document.tobytes()).text
    for page in document:
        page.set_rotation(90)
    assert parse_pdf(document.tobytes()).text == upright


def test_blank_page_between_starts_where_the_next_one_does() -> None:
    document = paper()
    document.new_page(1)
    parsed = parse_pdf(document.tobytes())
    assert parsed.page_starts[1] == parsed.page_starts[2]
    assert bisect_right(parsed.page_starts, parsed.page_starts[2]) == 3


def _error(raw: bytes) -> str:
    with pytest.raises(DocumentError) as caught:
        parse_pdf(raw)
    return str(caught.value)


def test_encrypted() -> None:
    raw = paper().tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="secret", owner_pw="owner")
    assert _error(raw).startswith("encrypted: needs a password")


def test_readable_without_password_is_read() -> None:
    raw = paper().tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="", owner_pw="owner")
    assert "Reciprocal rank fusion" in parse_pdf(raw).text


def test_scanned(library: str) -> None:
    document = pymupdf.open()
    pixels = pymupdf.Pixmap(pymupdf.csGRAY, pymupdf.IRect(0, 0, 40, 60))
    pixels.clear_with(200)
    for _ in range(2):
        document.new_page().insert_image((0, 0, 595, 842), pixmap=pixels)
    found = "no text layer: looks scanned (2 pages, 2 only images); "
    remedy = "OCR finds no text in them" if ocr.installed() else "install the language data of Tesseract"
    remedy = remedy if library == "pymupdf" else "OCR needs PyMuPDF; install the extra 'pymupdf'"
    assert _error(document.tobytes()).startswith(found + remedy)


def test_blank() -> None:
    document = pymupdf.open()
    document.new_page()
    assert _error(document.tobytes()).startswith("no text: all 1 pages are blank")


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9])
def test_truncated(kept: float) -> None:
    raw = paper().tobytes()
    assert _error(raw[: int(len(raw) * kept)]).startswith(("truncated PDF: ", "broken PDF: "))


def test_nothing_but_page_numbers() -> None:
    document = pymupdf.open()
    document.new_page().insert_text((290, 815), "1")
    assert _error(document.tobytes()).startswith("no text: nothing but page numbers")


def test_no_pages_and_no_pdf() -> None:
    assert "expected %PDF-" in _error(b"")
    assert "expected %PDF-" in _error(b"PK\x03\x04 a zip file")
    assert "broken PDF" in _error(b"%PDF-1.7\nnothing behind the header\n%%EOF\n")


def test_too_many_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nornweave.read.pdf.document.MAX_PAGES", 2)
    assert _error(paper().tobytes()).startswith("too long: 3 pages, at most 2")


def test_deadline() -> None:
    with pytest.raises(DocumentError, match=r"too slow: .* page 1 of 3"):
        parse_pdf(paper().tobytes(), deadline_s=-1)


@pytest.mark.parametrize(("missing", "stated", "first_line", "version"), [
    ((), "", "read", "pymupdf-"),
    (("pymupdf",), "", "read", "pypdfium2-"),
    (("pymupdf", "pypdfium2"), "", "PDF files need a library that is not installed: pip install", "no-pdf-library"),
    ((), "pdfium", "read", "pypdfium2-"),
    (("pypdfium2",), "pdfium", "NORNWEAVE_PDF_LIBRARY is 'pdfium', but pypdfium2 is not", "no-pdf-library"),
    ((), "acrobat", "NORNWEAVE_PDF_LIBRARY is 'acrobat'; expected 'pymupdf' or 'pdfium'", "pymupdf-"),
])  # fmt: skip
def test_the_library_is_the_stated_or_the_first_that_is_installed(
    missing: tuple[str, ...], stated: str, first_line: str, version: str
) -> None:
    code = f"""
import sys, importlib.metadata as metadata
missing, installed = {missing!r}, metadata.version
for name in missing:
    sys.modules[name] = None  # as if it was not installed
def version(name):
    if name in missing:
        raise metadata.PackageNotFoundError(name)
    return installed(name)
metadata.version = version
from nornweave.core.errors import DocumentError
from nornweave.read.file import parse_version, read_document
from nornweave.core.types import Domain, Entry, SourceId
read = lambda path, raw: read_document(SourceId("s"), Entry(path=path, gate=""), raw, domain=Domain.RESEARCH)
assert read("a.md", b"# Title").text == "# Title"
try:
    print("read" if read("a.pdf", sys.stdin.buffer.read()).text else "")
except DocumentError as error:
    print(error)
print(parse_version())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], input=PAPER, capture_output=True, check=True, env={**os.environ, VARIABLE: stated}
    )
    shown, versions = done.stdout.decode().splitlines()
    assert shown.startswith(first_line)
    assert version in versions


def test_libraries_keep_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    raw = paper().tobytes()
    for broken in (raw[:3000], raw.replace(b"endstream", b"endstraem", 2), raw.replace(b"/Kids", b"/Kdis")):
        try:
            parse_pdf(broken)
        except DocumentError as error:
            assert str(error)
    assert capfd.readouterr() == ("", "")


PAPER = paper().tobytes()


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=300))
@example(b"%PDF-")
def test_garbage_never_raises_anything_else(raw: bytes) -> None:
    for candidate in (raw, b"%PDF-1.4\n" + raw + b"%%EOF"):
        try:
            _assert_tiled(parse_pdf(candidate))
        except DocumentError as error:
            assert len(str(error)) > 10


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(PAPER) - 1), st.binary(min_size=1, max_size=8)), min_size=1, max_size=8))
def test_damaged_pdf_is_read_or_refused(damages: list[tuple[int, bytes]]) -> None:
    raw = bytearray(PAPER)
    for place, junk in damages:
        raw[place : place + len(junk)] = junk
    try:
        _assert_tiled(parse_pdf(bytes(raw)))
    except DocumentError as error:
        assert len(str(error)) > 10


def _run(text: str, x: float, y: float, size: float = 10.0, *, raised: bool = False) -> GlyphRun:
    return GlyphRun(text=text, size=size, font="Times", origin=(x, y), raised=raised)


def _page(*lines: list[GlyphRun]) -> list[str]:
    block = [GlyphLine(runs, (50.0, 50.0 + 12 * n, 300.0, 60.0 + 12 * n)) for n, runs in enumerate(lines)]
    page = read_page(1, PageGlyphs(595.0, 842.0, [block]))
    return [fragment.text for block in page.blocks for fragment in block.fragments]


@pytest.mark.parametrize(("right", "is_table"), [(300.0, True), (300.0, False)])
def test_cells_of_a_table_of_two_rows_are_read_one_after_another(right: float, is_table: bool) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((50, 60), "The fares of the ferry are below, and they hold for all days of the week.", fontsize=10)
    cells = [(50.0, 100.0, "kettle"), (right, 100.0, "lid"), (50.0, 140.0, "cup"), (right, 140.0, "spoon")]
    if not is_table:  # columns of text: all of the left one comes first
        cells.sort(key=lambda cell: cell[0])
    for x, y, name in cells:
        page.insert_text((x, y), f"The {name} counts the letters that", fontsize=10)
        page.insert_text((x, y + 12), f"people sent to the {name} number 7.", fontsize=10)
    text = " ".join(parse_pdf(document.tobytes()).text.split())
    for name in ("kettle", "lid", "cup", "spoon"):
        assert f"The {name} counts the letters that people sent to the {name} number 7." in text


def test_glyphs_become_plain_text() -> None:
    assert _page([_run("eﬃcient ﬁnd\u00a0it", 50, 58)]) == ["efficient find it"]
    assert _page([_run("10", 50, 58), _run("5", 60, 55, 7.0, raised=True)]) == ["10^5"]
    logo = [_run("L", 50, 58), _run("A", 56, 55, 7.0, raised=True), _run("TEX", 61, 58)]
    assert _page(logo) == ["LATEX"]
    assert _page([_run("\ufffd\ufffdAdvanced", 50, 58)]) == ["• Advanced"]
    assert _page([_run("\ufffd\ufffd\ufffd\ufffd", 50, 58)]) == []
    assert _page([_run("Ros´e", 50, 58)]) == ["Rosé"]
    codes = "o\x1ecial \x1coat o\x0b of 10\x1520 wa\x0fe \x0c"
    assert _page([replace(_run(codes, 50, 58), font="F34")]) == ["official fioat off of 10–20 waffle"]
    assert _page([_run(codes, 50, 58)]) == ["ocial oat o of 1020 wae"]
    assert _page([_run("a\x00b\ud800", 50, 58)]) == ["ab\ufffd"]
    assert _page([_run("flat", 50, 58, 0.0)], [_run("far", float("inf"), float("nan"), float("nan"))]) == [
        "flat",
        "far",
    ]
    assert _page([_run("1.1 Roles . . . . . . . . . 8", 50, 58)]) == ["1.1 Roles ... 8"]


@pytest.mark.parametrize(("before", "after", "joined"), [
    ("an experi-", "ment", "an experiment"),
    ("state-of-the-", "art", "state-of-the-art"),
    ("Seq-", "Seq", "Seq-Seq"),
    ("short-", "and long-term", "short- and long-term"),
    ("data-", "driven", "data-driven"),
    ("pages 389–", "409", "pages 389–409"),
    ("soft\u00ad", "ware", "software"),
    ("the end", "of it", "the end of it"),
])  # fmt: skip
def test_joining_of_broken_lines(before: str, after: str, joined: str) -> None:
    assert Hyphens(["a data-driven way"]).joined([before, after]) == joined


def test_the_document_decides_about_hyphens() -> None:
    assert Hyphens(["our re-examination"]).joined(["the re-", "examination"]) == "the re-examination"
    assert Hyphens(["our reexamination"]).joined(["the re-", "examination"]) == "the reexamination"


def test_long_documents_are_read_in_linear_time() -> None:
    def of_papers(count: int) -> bytes:
        document = paper()
        for _ in range(count - 1):
            document.insert_pdf(paper())
        return document.tobytes()

    assert len(parse_pdf(of_papers(16)).page_starts) == 48
    assert_subquadratic(parse_pdf, of_papers, 16, times=8)


# OCR -----------------------------------------------------------------------------------------------------------------


def scanned(*texts: str | None) -> bytes:
    """Return a PDF of pages that are pictures of text; ``None`` is a page with a text layer."""
    with pymupdf.open() as drawn, pymupdf.open() as document:
        for text in texts:
            page = document.new_page()
            if text is None:
                page.insert_text((72, 72), "This page has a text layer of its own.", fontsize=14)
                continue
            original = drawn.new_page()
            original.insert_text((72, 90), text, fontsize=18)
            page.insert_image(page.rect, pixmap=original.get_pixmap(dpi=150))
        return bytes(document.tobytes())


@pytest.fixture
def with_ocr(library: str) -> None:
    if library != "pymupdf" or ocr.installed() is None:
        pytest.skip("needs PyMuPDF and the language data of Tesseract")


@pytest.mark.usefixtures("with_ocr")
def test_scanned_pages_are_read_by_ocr_and_marked() -> None:
    parsed = parse_pdf(scanned("Invoices are due within thirty days.", None, "Reminders cost nine euros."))
    assert "Invoices are due within thirty days." in parsed.text
    assert "This page has a text layer of its own." in parsed.text
    assert parsed.metadata["ocr_pages"] == (1, 3)
    assert len(parsed.page_starts) == 3
    assert parsed.text[parsed.page_starts[2] :].startswith("Reminders cost nine euros.")
    document = read_document(
        SourceId("s"), Entry(path="a.pdf", gate=""), scanned("Only a picture.", None), domain=Domain.RESEARCH
    )
    index = TokenIndex(document.text, KnownStarts(HashEncoder(16).tokenizer.token_starts(document.text)))
    marks = [
        (chunk.page, chunk.metadata.get("ocr")) for chunk in Chunker("HIERARCHICAL_SECTIONS", 8).chunk(document, index)
    ]
    assert set(marks) == {(1, True), (2, None)}


@pytest.mark.usefixtures("with_ocr")
def test_scanned_pages_beyond_the_limit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "MAX_SCANNED_PAGES", 1)
    parsed = parse_pdf(scanned("First page of many.", "Second page of many."))
    assert "First page" in parsed.text
    assert "Second page" not in parsed.text
    assert parsed.metadata["left_out"] == ("page 2: scanned; beyond 1 pages or the time for OCR",)


def test_without_tesseract_scanned_pages_are_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: str
) -> None:
    remedy = ocr.INSTALL if library == "pymupdf" else ocr.NEEDS_PYMUPDF
    monkeypatch.setenv("TESSDATA_PREFIX", str(tmp_path))
    ocr.installed.cache_clear()
    try:
        assert ocr.version() == "no-ocr"
        parsed = parse_pdf(scanned(None, "A scanned page."))
        assert parsed.metadata["left_out"] == (f"page 2: scanned; {remedy}",)
        assert _error(scanned("A scanned page.")).endswith(remedy)
    finally:
        monkeypatch.undo()
        ocr.installed.cache_clear()


def _drawn_over(shape: Callable[[pymupdf.Page], None], text: str = "", **options: Any) -> Parsed:
    """Read a page with two plain sentences, ``text`` between them, and what ``shape`` draws over them."""
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((60, 100), "The pump stops when the tank is full.")
    page.insert_text((60, 200), text, **options)
    shape(page)
    page.insert_text((60, 300), "It starts again below forty percent.")
    return parse_pdf(document.tobytes())


def _nothing(page: pymupdf.Page) -> None:
    page.clean_contents()


def _box(*colour: float) -> Callable[[pymupdf.Page], None]:
    return lambda page: page.draw_rect((55, 185, 520, 206), color=None, fill=colour)


def _clip(page: pymupdf.Page) -> None:
    page.parent.update_stream(
        page.get_contents()[0],
        page.read_contents() + b"\nq 60 500 30 30 re W n BT /helv 11 Tf 60 642 Td (Nobody sees this clause.) Tj ET Q\n",
    )


SECRET = "Nobody sees this clause."


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        (_nothing, {"render_mode": 3}),
        (_nothing, {"color": (1, 1, 1)}),
        (_nothing, {"color": (0.99, 1, 0.98)}),
        (_nothing, {"fill_opacity": 0}),
        (_nothing, {"fontsize": 0.4}),
        (_box(0, 0, 0), {}),
        (_box(0.2, 0.4, 0.9), {"fontsize": 14}),
        (_nothing, {"color": (1, 1, 1), "fontsize": 5, "rotate": 270}),
    ],
)
def test_text_that_nobody_sees_is_left_out_and_counted(
    shape: Callable[[pymupdf.Page], None], options: dict[str, Any]
) -> None:
    parsed = _drawn_over(shape, SECRET, **options)
    assert parsed.text.split("\n\n") == [
        "The pump stops when the tank is full.",
        "It starts again below forty percent.",
    ]
    assert parsed.metadata["left_out"] == ("page 1: hidden text (1 run)",)


@pytest.mark.parametrize("is_on", [True, False])
def test_a_layer_that_is_off_is_not_read(is_on: bool) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((60, 100), "The pump stops when the tank is full.")
    page.insert_text((60, 200), SECRET, oc=document.add_ocg("internal", on=is_on))
    assert (SECRET in parse_pdf(document.tobytes()).text) is is_on


def test_text_outside_its_clip_is_not_read() -> None:
    parsed = _drawn_over(_clip)
    assert "Nobody" not in parsed.text
    assert "It starts again" in parsed.text


def test_a_blackened_name_goes_and_its_sentence_stays() -> None:
    document = pymupdf.open()
    page = document.new_page()
    said = "The refund for Ada Lovelace was paid in May."
    page.insert_text((60, 200), said)
    begin = 60 + pymupdf.get_text_length("The refund for ")
    page.draw_rect((begin - 0.5, 188, begin + pymupdf.get_text_length("Ada Lovelace") + 0.5, 205), fill=(0, 0, 0))
    assert parse_pdf(document.tobytes()).text == "The refund for was paid in May."


def test_light_covered_or_invisible_text_that_is_seen_stays() -> None:
    def shape(page: pymupdf.Page) -> None:
        page.draw_rect((50, 240, 400, 262), fill=(0, 0, 0.5))
        page.insert_text((60, 255), "White letters on a blue bar.", color=(1, 1, 1))
        page.draw_rect((50, 80, 500, 110), color=(1, 0, 0))  # a frame without a fill
        page.draw_rect((50, 185, 500, 206), fill=(1, 1, 0), overlay=False)

    parsed = _drawn_over(shape, "Marked with a yellow pen.", color=(0.6, 0.6, 0.6))
    assert "White letters on a blue bar." in parsed.text
    assert "Marked with a yellow pen." in parsed.text
    assert "The pump stops" in parsed.text
    assert "left_out" not in {key for key, value in parsed.metadata.items() if value}


@pytest.mark.parametrize("turned", [0, 90, 270])
def test_the_text_layer_of_a_scan_stays(turned: int) -> None:
    drawn = pymupdf.open()
    drawn.new_page().insert_text((60, 100), "The pump stops when the tank is full.")
    document = pymupdf.open()
    page = document.new_page()
    page.insert_image(page.rect, stream=drawn[0].get_pixmap().tobytes("png"))
    page.insert_text((60, 400), "The pump stops when the tank is full.", render_mode=3)  # not quite in its place
    page.set_rotation(turned)
    parsed = parse_pdf(document.tobytes())
    assert parsed.text == "The pump stops when the tank is full."
    assert not parsed.metadata.get("left_out")
