"""Office documents, books, notebooks and e-mail: what is read, how it is cut, and where a citation says it stands."""

import io
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from email.message import EmailMessage
from typing import Any

import docx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import Font, PatternFill
from openpyxl.styles.colors import Color
from openpyxl.utils import range_boundaries
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.dml.color import RGBColor
from pptx.enum.chart import XL_CHART_TYPE
from pptx.enum.dml import MSO_THEME_COLOR
from pptx.oxml.xmlchemy import OxmlElement
from pptx.util import Inches, Pt

from lab.fuzz.packed import archive, epub, word_file
from nornweave.core.text.spans import KnownStarts, TokenIndex
from nornweave.core.types import Chunk, Document, Domain, Entry, SourceId
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.read.chunking.chunker import Chunker
from nornweave.read.chunking.sections import CONVERTED as CUT_AS_MARKDOWN
from nornweave.read.file import read_document
from nornweave.read.formats import xlsx
from nornweave.read.formats.reader import CONVERTED

ENCODER = HashEncoder(dimensions=16)


def read(path: str, raw: bytes, domain: Domain = Domain.DOCUMENTATION) -> Document:
    return read_document(SourceId("s"), Entry(path=path, gate=""), raw, domain=domain)


def cut(document: Document) -> list[Chunk]:
    index = TokenIndex(document.text, KnownStarts(ENCODER.tokenizer.token_starts(document.text)))
    return list(Chunker("HIERARCHICAL_SECTIONS", 512).chunk(document, index))


def saved(file: Any) -> bytes:
    buffer = io.BytesIO()
    file.save(buffer)
    return buffer.getvalue()


def workbook(sheets: Mapping[str, list[list[Any]]]) -> bytes:
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    return saved(book)


def chunk_with(chunks: list[Chunk], *texts: str) -> Chunk:
    return next(chunk for chunk in chunks if all(text in chunk.content for text in texts))


def test_every_format_that_is_converted_is_cut_as_markdown() -> None:
    assert frozenset(CONVERTED.values()) == CUT_AS_MARKDOWN


# Word ----------------------------------------------------------------------------------------------------------------


def word_document() -> bytes:
    document = docx.Document()
    document.core_properties.author, document.core_properties.keywords = "Ada", "limits, retries"
    document.core_properties.modified = datetime(2026, 3, 1, 12, tzinfo=UTC)
    document.add_heading("Payments handbook", level=0)
    document.add_heading("Limits", level=1)
    document.add_paragraph("What the gateway allows.")
    document.add_heading("Rate limits", level=2)
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Plan", "Requests per minute"
    for number in range(200):
        cells = table.add_row().cells
        cells[0].text, cells[1].text = f"plan {number}", str(1_000 + number)
    document.add_paragraph("# no heading")
    return saved(document)


def test_a_word_documents_headings_are_paths_and_each_part_of_a_table_has_its_header() -> None:
    document = read("a.docx", word_document())
    assert (document.title, document.format) == ("Payments handbook", "docx")
    assert document.updated_at == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert document.metadata["authors"] == ("Ada",)
    assert document.metadata["tags"] == ("limits", "retries")
    chunks = cut(document)
    row = chunk_with(chunks, "| plan 150 | 1150 |")
    assert row.section == "Payments handbook > Limits > Rate limits"
    assert "| Plan | Requests per minute |" in row.content
    assert len([chunk for chunk in chunks if "| Plan | Requests per minute |" in chunk.content]) > 3
    assert chunks[-1].section == row.section, "a line that looks like Markdown is no heading"


def test_a_style_based_on_a_heading_is_one_and_merged_cells_are_filled() -> None:
    styles = (
        '<w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr>'
        '</w:style><w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="Chapter of ours"/>'
        '<w:basedOn w:val="H1"/></w:style>'
    )
    rows = (
        "<w:tr><w:tc><w:p><w:r><w:t>Region</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>City</w:t></w:r></w:p></w:tc></w:tr>"
        '<w:tr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr><w:p><w:r><w:t>North</w:t></w:r></w:p></w:tc>'
        "<w:tc><w:p><w:r><w:t>Oslo</w:t></w:r></w:p></w:tc></w:tr>"
        "<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc><w:tc><w:p><w:r><w:t>Bergen</w:t></w:r></w:p></w:tc></w:tr>"
    )
    body = f'<w:p><w:pPr><w:pStyle w:val="Mine"/></w:pPr><w:r><w:t>Places</w:t></w:r></w:p><w:tbl>{rows}</w:tbl>'
    assert read("a.docx", word_file(body, styles)).text == (
        "## Places\n\n| Region | City |\n| --- | --- |\n| North | Oslo |\n| North | Bergen |"
    )


LEVEL = """<w:lvl w:ilvl="{}"><w:start w:val="{}"/><w:numFmt w:val="{}"/><w:pStyle w:val="H{}"/><w:lvlText w:val="{}"/>
</w:lvl>"""
NUMBERS = """<w:abstractNum w:abstractNumId="7">{}{}</w:abstractNum>
<w:num w:numId="3"><w:abstractNumId w:val="7"/></w:num>
<w:num w:numId="4"><w:abstractNumId w:val="7"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>
</w:num>"""
HEADINGS = "".join(
    f'<w:style w:type="paragraph" w:styleId="H{n}"><w:name w:val="heading {n}"/><w:pPr><w:numPr>'
    f'<w:ilvl w:val="{n - 1}"/><w:numId w:val="3"/></w:numPr><w:outlineLvl w:val="{n - 1}"/></w:pPr></w:style>'
    for n in (1, 2)
)


def headed(style: str, text: str, numbering: str = "") -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/>{numbering}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'


@pytest.mark.parametrize(("first", "second", "one", "two", "start", "numbers"), [
    ("decimal", "decimal", "%1", "%1.%2", 1, ["1", "2", "2.1", "2.2", "3", "3.1", "none", "5"]),
    ("upperRoman", "lowerLetter", "Art. %1.", "(%2)", 1,
     ["Art. I.", "Art. II.", "(a)", "(b)", "Art. III.", "(a)", "none", "Art. V."]),
    ("upperLetter", "decimalZero", "App. %1:", "%1-%2", 26,
     ["App. Z:", "App. AA:", "AA-01", "AA-02", "App. BB:", "BB-01", "none", "App. E:"]),
])  # fmt: skip
def test_headings_of_word_have_the_numbers_that_word_shows(
    first: str, second: str, one: str, two: str, start: int, numbers: list[str]
) -> None:
    plain, other = (f'<w:numPr><w:numId w:val="{each}"/></w:numPr>' for each in (0, 4))
    body = "".join(
        headed(style, f"Name {place}", numbering)
        for place, (style, numbering) in enumerate(
            [("H1", ""), ("H1", ""), ("H2", ""), ("H2", ""), ("H1", ""), ("H2", ""), ("H1", plain), ("H1", other)]
        )
    )
    numbering = NUMBERS.format(LEVEL.format(0, start, first, 1, one), LEVEL.format(1, 1, second, 2, two))
    text = read("a.docx", word_file(body, HEADINGS, numbering)).text
    shown = [line.lstrip("# ").replace("\\", "").rpartition("Name")[0].strip() for line in text.split("\n") if line]
    assert shown == ["" if number == "none" else number for number in numbers]


def test_hidden_text_slides_sheets_rows_and_columns_are_left_out_and_counted() -> None:
    body = "<w:p><w:r><w:t>Shown.</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>Secret.</w:t></w:r></w:p>"
    document = read("a.docx", word_file(body))
    assert (document.text, document.metadata["left_out"]) == ("Shown.", ("hidden text (1 runs)",))
    style = '<w:style w:type="{}" w:styleId="{}"><w:name w:val="x"/><w:basedOn w:val="{}"/>{}</w:style>'
    on = "<w:rPr><w:vanish/></w:rPr>"
    styles = style.format("character", "Gone", "", on) + style.format("paragraph", "Away", "", on)
    styles += style.format("paragraph", "Below", "Away", "")
    body = (
        '<w:p><w:r><w:t>Shown.</w:t></w:r><w:r><w:rPr><w:rStyle w:val="Gone"/></w:rPr><w:t>no</w:t></w:r></w:p>'
        '<w:p><w:pPr><w:pStyle w:val="Below"/></w:pPr><w:r><w:t>no</w:t></w:r>'
        '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>Seen.</w:t></w:r></w:p><w:p><w:r><w:t>Last.</w:t></w:r></w:p>'
    )
    document = read("a.docx", word_file(body, styles))
    assert (document.text, document.metadata["left_out"]) == (
        "Shown.\n\nSeen.\n\nLast.", ("hidden text (2 runs)",)
    )  # fmt: skip
    run = "<w:r><w:rPr>{}</w:rPr><w:t>{}</w:t></w:r>"
    white, tiny = '<w:color w:val="FFFFFF"/>', '<w:sz w:val="2"/>'
    marked = white + '<w:highlight w:val="black"/>'
    body = (
        f"<w:p>{run.format('', 'Shown.')}{run.format(white, 'no')}{run.format(tiny, 'no')}</w:p>"
        f"<w:p>{run.format(marked, 'Marked.')}</w:p>"
        f'<w:p><w:pPr><w:shd w:val="clear" w:fill="002060"/></w:pPr>{run.format(white, "On a bar.")}</w:p>'
        f"<w:tbl><w:tr><w:tc><w:p>{run.format(white, 'In a cell.')}</w:p></w:tc></w:tr></w:tbl>"
    )
    document = read("a.docx", word_file(body))
    assert document.text.split() == ["Shown.", "Marked.", "On", "a", "bar.", "In", "a", "cell."]
    assert document.metadata["left_out"] == ("hidden text (2 runs)",)
    slides = Presentation()
    for name in ("First", "Secret", "Third"):
        slides.slides.add_slide(slides.slide_layouts[5]).shapes.title.text = name
    slides.slides[1].element.set("show", "0")
    document = read("a.pptx", saved(slides))
    assert document.text == "# First\n\n# Third" and document.metadata["left_out"] == ("slide 2: hidden",)
    assert [chunk.page for chunk in cut(document)] == [1, 3]
    group = slides.slides[2].shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "Seen."
    secret = slides.slides[2].shapes.add_textbox(0, 0, Inches(1), Inches(1))
    secret.text_frame.text = "Secret."
    secret._element.find(".//{*}cNvPr").set("hidden", "1")
    slides.slides[0].shapes.title._element.find(".//{*}cNvPr").set("hidden", "true")
    document = read("a.pptx", saved(slides))
    assert document.text == "# Slide 1\n\n# Third\n\nSeen."
    assert document.metadata["left_out"] == ("slide 2: hidden", "slide 3: a hidden shape")
    for left, top in ((Inches(40), 0), (-Inches(2), 0), (0, Inches(20))):
        slides.slides[2].shapes.add_textbox(left, top, Inches(1), Inches(1)).text_frame.text = "Secret."
    document = read("a.pptx", saved(slides))
    assert document.text == "# Slide 1\n\n# Third\n\nSeen."
    assert document.metadata["left_out"].count("slide 3: a hidden shape") == 4
    group._element.find(".//{*}cNvPr").set("hidden", "1")
    assert "Seen" not in read("a.pptx", saved(slides)).text
    book = Workbook()
    shown, secret = book.active, book.create_sheet("Secret")
    for sheet in (shown, secret):
        for row in (["Zone", "Margin", "Sales"], ["North", "secret", 1], ["South", 0.5, 2], ["secret zone", 0.1, 3]):
            sheet.append(row)
    shown.row_dimensions[4].hidden = True
    shown.column_dimensions["B"].hidden = True
    secret.sheet_state = "hidden"
    shown["C2"].number_format = shown["D2"].number_format = ";;;"
    shown["D2"], shown["E2"] = "secret", "seen"
    document = read("a.xlsx", saved(book))
    assert "secret" not in document.text.replace("hidden rows", "").casefold()
    assert "| North |  | seen |" in document.text and "| South | 2 |" in document.text
    assert document.metadata["left_out"] == (
        "Sheet: 6 cells in hidden rows and columns",
        "Sheet: 2 cells that show nothing",
        "Secret: a hidden sheet",
    )


def test_text_in_the_colour_of_what_is_behind_it_is_left_out_and_counted() -> None:
    run = "<w:r><w:rPr>{}</w:rPr><w:t>{}</w:t></w:r>"
    style = '<w:style w:type="{}" w:styleId="{}"><w:name w:val="x"/>{}<w:rPr>{}</w:rPr></w:style>'
    styles = style.format("paragraph", "Pale", "", '<w:color w:val="FFFFFF"/>')
    styles += style.format("paragraph", "Below", '<w:basedOn w:val="Pale"/>', "")
    black, nearly, grey = (f'<w:color w:val="{ink}"/>' for ink in ("000000", "FEFDFE", "DDDDDD"))
    shaded = black + '<w:shd w:val="clear" w:fill="000000"/>'
    body = (
        f'<w:p><w:pPr><w:pStyle w:val="Below"/></w:pPr>{run.format("", "no")}{run.format(black, "Shown.")}</w:p>'
        f"<w:p>{run.format(nearly, 'no')}{run.format(grey, 'Grey.')}</w:p><w:p>{run.format(shaded, 'no')}</w:p>"
    )
    document = read("a.docx", word_file(body, styles))
    assert (document.text.split(), document.metadata["left_out"]) == (["Shown.", "Grey."], ("hidden text (3 runs)",))

    slides = Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[6])
    white, night = RGBColor(255, 255, 255), RGBColor(9, 9, 9)
    for row, (said, ink, points, fill) in enumerate([
        ("no", white, 12, None), ("no", MSO_THEME_COLOR.BACKGROUND_1, 12, None), ("no", None, 1, None),
        ("no", night, 12, night), ("On a bar.", white, 12, night),
        ("Plain.", None, 12, None), ("no", night, 13, None), ("no", None, 14, None), ("Half.", night, 15, None),
    ]):  # fmt: skip
        box = slide.shapes.add_textbox(0, Inches(row * 0.75), Inches(3), Inches(0.5))
        if fill is not None:
            box.fill.solid()
            box.fill.fore_color.rgb = fill
        added = box.text_frame.paragraphs[0].add_run()
        added.text, added.font.size = said, Pt(points)
        if isinstance(ink, RGBColor):
            added.font.color.rgb = ink
        elif ink is not None:
            added.font.color.theme_color = ink
        if points in {13, 15}:
            alpha = OxmlElement("a:alpha")
            alpha.set("val", "0" if points == 13 else "50000")
            added.font._element.find(".//{*}srgbClr").append(alpha)
        elif points == 14:
            added.font.fill.background()
    bar = slide.shapes.add_shape(1, 0, Inches(7), Inches(3), Inches(0.5))
    over = slide.shapes.add_textbox(0, Inches(7), Inches(3), Inches(0.4)).text_frame.paragraphs[0].add_run()
    over.text, over.font.color.rgb = "Over a bar.", white
    document = read("a.pptx", saved(slides))
    assert bar is not None and "no" not in document.text.split()
    assert all(said in document.text for said in ("On a bar.", "Plain.", "Over a bar.", "Half."))
    assert document.metadata["left_out"] == ("slide 1: hidden text (6 runs)",)

    book = Workbook()
    sheet = book.active
    sheet.append(["Kettle", "Litres", "Price", "Of"])
    for at, (color, fill) in enumerate([("FFFFFFFF", None), ("FF00AA00", "FF00AA00"), ("FFFFFFFF", "FF000080")], 1):
        cell = sheet.cell(2, at, "no" if at < 3 else "seen")
        cell.font = Font(color=color)
        cell.fill = PatternFill("solid", fgColor=fill) if fill else PatternFill()
    sheet["D2"], sheet["D2"].font = "no", Font(color=Color(theme=0))
    document = read("a.xlsx", saved(book))
    assert "no" not in document.text.split() and "seen" in document.text
    assert document.metadata["left_out"] == ("Sheet: 3 cells that show nothing",)
    sheet.conditional_formatting.add("A2", CellIsRule("equal", ['"x"'], fill=PatternFill("solid", bgColor="FF000000")))
    assert document.text.count("| no") < read("a.xlsx", saved(book)).text.count("| no")


def test_cells_of_a_notebook_that_its_pages_do_not_show_are_left_out() -> None:
    def cell(source: str, *tags: str) -> dict[str, object]:
        shown = {"output_type": "stream", "text": f"says {source}"}
        return {"cell_type": "code", "source": source, "outputs": [shown], "metadata": {"tags": list(tags)}}

    cells = [cell("no1", "remove-cell"), cell("no2", "Hide_Cell"), cell("in3", "remove-input"), cell("in4", "x")]
    for number, folded in enumerate(({"source_hidden": True}, {"outputs_hidden": True}, {"source_hidden": False}), 5):
        cells.append(cell(f"in{number}") | {"metadata": {"jupyter": folded}})
    document = read("a.ipynb", json.dumps({"cells": cells, "nbformat": 4}).encode())
    assert [document.text.count(f"in{n}") for n in (5, 6, 7)] == [1, 1, 2] and "says in6" not in document.text
    assert "no" not in document.text and document.text.count("in3") == 1 and document.text.count("in4") == 2
    assert document.metadata["left_out"] == (
        "cell 1: hidden", "cell 2: hidden", "cell 3: hidden code", "cell 5: hidden code"
    )  # fmt: skip


# Presentations -------------------------------------------------------------------------------------------------------


def presentation() -> bytes:
    slides = Presentation()
    first = slides.slides.add_slide(slides.slide_layouts[1])
    first.shapes.title.text = "Release plan"
    first.placeholders[1].text = "Freeze on Friday\nShip on Monday"
    first.notes_slide.notes_text_frame.text = "Say who is on call."
    second = slides.slides.add_slide(slides.slide_layouts[6])
    table = second.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(1)).table
    for place, text in enumerate(("Team", "Budget", "Search", "40 | 50")):
        table.cell(place // 2, place % 2).text = text
    data = CategoryChartData()
    data.categories = ["2025", "2026"]
    data.add_series("Incidents", (7, 3))
    second.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, Inches(1), Inches(3), Inches(4), Inches(2), data)
    return saved(slides)


def test_a_slide_is_a_page_with_its_notes_tables_and_charts() -> None:
    document = read("a.pptx", presentation())
    assert document.title == "Release plan"
    first, second = cut(document)
    assert (first.page, first.section) == (1, "Release plan")
    assert "- Ship on Monday\n\nNotes:\n\nSay who is on call." in first.content
    assert (second.page, second.section) == (2, "Slide 2")
    assert "| Team | Budget |\n| --- | --- |\n| Search | 40 \\| 50 |" in second.content
    assert "|  | Incidents |\n| --- | --- |\n| 2025 | 7 |\n| 2026 | 3 |" in second.content


# Workbooks -----------------------------------------------------------------------------------------------------------


def test_a_sheets_tables_are_cited_by_their_ranges_with_what_stands_above_them() -> None:
    rows: list[list[Any]] = [
        ["Sales by zone"],
        [],
        ["In millions", None, "2025"],
        ["Zone", "Sales", "Margin"],
        ["North", 12553, 0.1725],
        ["South", 9467, 0.2],
        [],
        ["Source: ledger"],
    ]
    raw = workbook({"Report": rows})
    document = read("a.xlsx", raw)
    chunks = cut(document)
    table = chunk_with(chunks, "| South | 9467 |")
    assert table.section == "Report > A3:C6"
    assert table.content == (
        "## A3:C6\n\nIn millions · 2025\n\n| Zone | Sales | Margin |\n| --- | --- | --- |\n"
        "| North | 12553 | 0.1725 |\n| South | 9467 | 0.2 |"
    )
    assert chunk_with(chunks, "Source: ledger").section == "Report > A8"


@given(
    st.integers(1, 60), st.integers(2, 6), st.integers(0, 3), st.lists(st.integers(0, 10**6), min_size=1, max_size=20)
)
@settings(max_examples=40, deadline=None)
def test_a_row_is_found_with_its_header_and_its_range(rows: int, columns: int, above: int, numbers: list[int]) -> None:
    names = [f"name{column}" for column in range(columns)]
    body = [
        [f"row{row}", *(numbers[(row + column) % len(numbers)] for column in range(1, columns))] for row in range(rows)
    ]
    chunks = cut(read("a.xlsx", workbook({"S": [[] for _ in range(above)] + [names, *body]})))
    for row in range(rows):
        chunk = chunk_with(chunks, f"| row{row} |")
        assert "| name0 | name1 |" in chunk.content
        left, top, right, bottom = range_boundaries((chunk.section or "").partition(" > ")[2])
        assert top <= above + 2 + row <= bottom
        assert (left, right) == (1, columns)


def test_years_head_columns_and_shares_are_per_cent() -> None:
    book = Workbook()
    sheet = book.active
    sheet.append(["Income", 2024, 2025])
    sheet.append([40000, 0.255, 0.51])
    sheet["B2"].number_format = "0.0%"
    sheet["E9"] = date(2026, 5, 1)
    text = read("a.xlsx", saved(book)).text
    assert "| Income | 2024 | 2025 |\n| --- | --- | --- |\n| 40000 | 25.5% | 0.51 |" in text
    assert "## E9\n\n2026-05-01" in text


def test_what_is_beyond_the_limits_of_a_workbook_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx, "MAX_CELLS", 25)
    wide: list[Any] = [None] * 300
    wide[299] = "far"
    document = read("a.xlsx", workbook({"A": [["n", "m"], *([row, row] for row in range(20))], "B": [wide, ["b"]]}))
    named = ("A: rows from 13 on, beyond 25 cells", "B: columns after IV")
    assert document.metadata["left_out"] == named
    assert "(rows from 13 on, beyond 25 cells)" in document.text
    assert "(columns after IV)" in document.text


# Books ---------------------------------------------------------------------------------------------------------------


def test_a_books_chapters_come_in_its_order_and_have_the_names_of_its_contents() -> None:
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        "<dc:title>Winter</dc:title><dc:creator>E. Benson</dc:creator><dc:date>2019-08-23</dc:date></metadata>"
        "<manifest>"
        '<item id="one" href="one.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="two" href="t%20wo.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest>'
        '<spine><itemref idref="two"/><itemref idref="one"/></spine></package>'
    )
    ncx = (
        '<!DOCTYPE ncx PUBLIC "x" "y"><ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel>'
        '<text>Preface</text></navLabel><content src="t%20wo.xhtml#a"/></navPoint></navMap></ncx>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="b/c.opf"/>'
        "</rootfiles></container>"
    )
    members = {
        "META-INF/container.xml": container, "b/c.opf": opf, "b/toc.ncx": ncx,
        "b/one.xhtml": "<html><head><title>x</title></head><body><h2>Skating</h2><p>On ice.</p></body></html>",
        "b/t wo.xhtml": "<html><head><link rel='stylesheet' href='look/s.css'/></head><body><p>How it began.</p>"
        "<p class='off'>Unseen.</p><script>no()</script></body></html>", "b/look/s.css": ".off{display:none}",
    }  # fmt: skip
    document = read("a.epub", archive(members))
    assert document.text == "# Preface\n\nHow it began.\n\n## Skating\n\nOn ice."
    assert (document.title, document.metadata["authors"]) == ("Winter", ("E. Benson",))
    assert document.updated_at == datetime(2019, 8, 23, tzinfo=UTC)
    assert [chunk.section for chunk in cut(document)] == ["Preface", "Preface > Skating"]


# Notebooks -----------------------------------------------------------------------------------------------------------


def test_a_notebooks_cells_are_prose_and_code_and_named_in_citations() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Churn\n", "Why they leave.\n```python\nopen_fence"]},
        {
            "cell_type": "code",
            "source": "rate = left / all",
            "outputs": [{"output_type": "stream", "text": ["0.25\n"]}],
        },
        {"cell_type": "markdown", "source": "## By plan"},
        {
            "cell_type": "code",
            "source": "table",
            "outputs": [
                {"output_type": "display_data", "data": {"text/plain": "x" * 5_000, "image/png": "AAAA"}},
                {"output_type": "error", "ename": "KeyError", "evalue": "'plan'"},
            ],
        },
    ]
    metadata = {"kernelspec": {"language": "python"}}
    document = read("a.ipynb", json.dumps({"nbformat": 4, "metadata": metadata, "cells": cells}).encode())
    assert document.title == "Churn"
    assert document.metadata["left_out"] == ("cell 4: output beyond 4,000 characters",)
    chunks = cut(document)
    rate = chunk_with(chunks, "```python\nrate = left / all\n```\n\n```text\n0.25\n```")
    assert rate.section == "Churn > cells 1-2"
    assert (chunks[-1].section or "").startswith("Churn > By plan > cell")
    assert "AAAA" not in document.text


# E-mail --------------------------------------------------------------------------------------------------------------


def message(subject: str, text: str = "", html: str = "") -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Ada Lovelace <ada@example.org>", "team@example.org", subject
    mail["Date"] = "Tue, 03 Mar 2026 09:30:00 +0100"
    if text:
        mail.set_content(text)
    if html:
        (mail.add_alternative if text else mail.set_content)(html, subtype="html")
    return mail


def test_an_e_mail_says_who_wrote_what_when_and_its_attachments_are_sections() -> None:
    mail = message("Größe der Queue", "Please raise it.\n# not a heading\n-- \nAda", "<p>In HTML</p>")
    mail.add_attachment(word_document(), maintype="application", subtype="octet-stream", filename="handbook.docx")
    mail.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="chart.png")
    mail.add_attachment(message("Forwarded", "Inner text."))
    document = read("a.eml", mail.as_bytes())
    assert (document.title, document.metadata["authors"]) == ("Größe der Queue", ("Ada Lovelace",))
    assert document.updated_at == datetime(2026, 3, 3, 8, 30, tzinfo=UTC)
    assert document.metadata["attachments"] == ("handbook.docx", "chart.png", "message/rfc822")
    assert document.metadata["left_out"] == ("attachment chart.png: of a format that is not read",)
    assert "In HTML" not in document.text
    chunks = cut(document)
    assert chunk_with(chunks, "Please raise it.", "From: Ada Lovelace").section == "Größe der Queue"
    place = "Größe der Queue > Attachment: handbook.docx > Payments handbook > Limits > Rate limits"
    assert chunk_with(chunks, "| plan 150 | 1150 |").section == place
    assert "Inner text." in document.text


def test_html_is_read_where_an_e_mail_has_no_plain_text() -> None:
    html = "<table><tr><td><table><tr><td><h1>News</h1>Read <a href='https://example.org'>this</a></td></tr></table>"
    text = read("a.eml", message("Hi", html=html).as_bytes()).text
    assert text.endswith("## News\n\nRead [this](https://example.org)")


def test_messages_in_messages_end_somewhere() -> None:
    mail = message("0", "the innermost")
    for level in range(1, 8):
        outer = message(str(level), f"level {level}")
        outer.add_attachment(mail)
        mail = outer
    document = read("a.eml", mail.as_bytes())
    assert "level 4" in document.text
    assert "the innermost" not in document.text
    assert document.metadata["left_out"] == ("attachment message/rfc822: beyond 50 attachments or 3 levels",)


def test_handed_in_text_of_an_office_document_is_text_and_its_bytes_are_the_document() -> None:
    entry = Entry(path="a.docx", gate="")
    text, file = (
        read_document(SourceId("s"), entry, raw, domain=Domain.RESEARCH, is_handed_in=True)
        for raw in (b"Plain words.", word_document())
    )
    assert (text.format, text.text) == ("text", "Plain words.")
    assert (file.format, file.title) == ("docx", "Payments handbook")


def test_research_documents_carry_what_is_known_of_them() -> None:
    (chunk,) = cut(read("a.epub", epub("<h1>One</h1><p>Text.</p>"), Domain.RESEARCH))
    assert (chunk.metadata["title"], chunk.metadata["section_name"]) == ("Book", "One")


def test_what_a_reply_quotes_is_left_out_and_what_is_passed_on_has_its_author() -> None:
    reply = message(
        "Re: Backups", "Too long.\n\nOn Mon, 13 Oct 2025, Rosa Lima wrote:\n> Keep them 400 days.\n> Always.\n"
    )
    reply["In-Reply-To"] = "<1@example.org>"
    document = read("a.eml", reply.as_bytes())
    assert "Too long." in document.text and "400 days" not in document.text and "Rosa" not in document.text
    assert document.metadata["left_out"] == ("2 quoted lines of other mails",)
    header = "From: Rosa Lima <r@x.org>\nDate: Mon\nSubject: S\nTo: Ops"
    passed = f"FYI\n\n---------- Forwarded message ---------\n{header}\n\nKeep them."
    assert (
        "FYI\n\n## Passed on from Rosa Lima\n\nKeep them." in read("a.eml", message("Fwd: S", passed).as_bytes()).text
    )
    mails = (message("Backups", "One.").as_bytes(), reply.as_bytes())
    mailbox = b"".join(b"From - Mon Oct 13 09:00:00 2025\n" + mail + b"\n" for mail in mails)
    document = read("a.mbox", mailbox)
    assert "One." in document.text and "Too long." in document.text and "400 days" not in document.text
