"""What stands around the text of a PDF and what only looks so, drawn here line by line and read by both libraries."""

import re
import textwrap
from collections.abc import Callable, Iterator

import pymupdf
import pytest

from nornweave.read.parsed import Parsed
from nornweave.read.pdf.document import parse_pdf
from nornweave.read.pdf.port import VARIABLE


@pytest.fixture(autouse=True, scope="module", params=["pymupdf", "pdfium"])
def library(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, request.param)
        yield request.param


TEXT = (
    "every passage has a place in its file and the place is checked again when the file is read so that an answer "
    "never names a line that is not there any more in the repository where it was found at first"
)
WORDS = TEXT.split()
Draw = Callable[[pymupdf.Page, int], None]


def drawn(count: int, *draw: Draw, height: float = 842) -> Parsed:
    """Read a document of so many pages; each function draws on a page, of which it is told the number."""
    document = pymupdf.open()
    for number in range(1, count + 1):
        page = document.new_page(width=595, height=height)
        for each in draw:
            each(page, number)
    return parse_pdf(document.tobytes())


def prose(x: float = 72, y: float = 100, *, lines: int = 40, words: int = 9, leading: float = 12) -> Draw:
    """Draw running text, which goes on from page to page."""

    def draw(page: pymupdf.Page, number: int) -> None:
        for line in range(lines):
            first = ((number - 1) * lines + line) * words
            said = " ".join(WORDS[(first + step) % len(WORDS)] for step in range(words))
            page.insert_text((x, y + leading * line), said, fontsize=10)

    return draw


def at(x: float, y: float, text: str, size: float = 10) -> Draw:
    """Draw one line; ``{n}`` is the number of the page."""
    return lambda page, number: page.insert_text((x, y), text.format(n=number), fontsize=size)


def rows(text: str, *, count: int = 44, y: float = 70, leading: float = 16) -> Draw:
    """Draw a list that goes on from page to page; ``{n}`` is the number of the row."""

    def draw(page: pymupdf.Page, number: int) -> None:
        for row in range(count):
            said = text.format(n=(number - 1) * count + row + 1)
            page.insert_text((70, y + leading * row), said, fontsize=10)

    return draw


def left_out(parsed: Parsed) -> str:
    return "; ".join(map(str, parsed.metadata.get("left_out") or ()))


def numbers_in(parsed: Parsed) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", parsed.text)]


def test_rows_at_the_distance_of_the_text_are_text_whatever_they_say() -> None:
    plain = drawn(3, rows("Alarm {n}: close valve {n} within nine seconds."))
    assert [number for number in range(1, 133) if f"Alarm {number}:" not in plain.text] == []
    assert not left_out(plain)
    around = drawn(
        3,
        at(70, 30, "Alarm list"),
        rows("Alarm {n}: close valve {n}."),
        at(290, 820, "page {n} of 3"),
        rows("same", count=0),
    )
    assert [number for number in range(1, 133) if f"Alarm {number}:" not in around.text] == []
    assert left_out(around) == "page numbers (3 pages); running line at the top (3 pages): Alarm list"
    same = drawn(4, rows("All valves are closed."))
    assert same.text.count("All valves are closed.") == 4 * 44


def test_one_record_a_page_keeps_what_tells_them_apart() -> None:
    """A heading with a number that is no page number, though all stand at one place."""
    parsed = drawn(5, lambda page, number: page.insert_text((70, 60), f"Ticket {number * 17}", fontsize=10), prose())
    assert re.findall(r"Ticket \d+", parsed.text) == [f"Ticket {number * 17}" for number in range(1, 6)]


def test_the_header_of_a_table_that_goes_on_is_no_running_line() -> None:
    def table(page: pymupdf.Page, number: int) -> None:
        for x, name in ((70, "Code"), (170, "Name of the valve"), (370, "Limit")):
            page.insert_text((x, 60), name, fontsize=10)
            for row in range(30):
                cell = {"Code": f"V{number}{row:02d}", "Limit": f"{row} bar"}.get(name, f"valve {row}")
                page.insert_text((x, 90 + 14 * row), cell, fontsize=10)

    parsed = drawn(3, table)
    assert parsed.text.count("Name of the valve") == 3
    assert all(f"V{page}{row:02d}" in parsed.text for page in (1, 2, 3) for row in range(30))


@pytest.mark.parametrize("number", [
    at(296, 716, "{n}"), at(530, 40, "{n}"), at(280, 716, "- {n} -"), at(260, 800, "Page {n} of 4"),
    at(260, 800, "Seite {n} von 4"), at(280, 800, "A-{n}"), at(280, 800, "2-{n}"),
    at(70, 800, "Handbook of valves | {n}"),
    lambda page, n: page.insert_text((280, 716), ["iii", "iv", "v", "vi"][n - 1]),
    lambda page, n: page.insert_text((72 if n % 2 else 500, 40), f"{n + 316}"),
])  # fmt: skip
def test_the_number_of_a_page_is_not_in_a_sentence(number: Draw) -> None:
    plain, numbered = drawn(4, prose()), drawn(4, prose(), number)
    assert numbered.text == plain.text
    assert left_out(numbered)


def test_headers_that_name_the_chapter_go_and_headings_stay() -> None:
    chapters = ["Of valves", "Of pumps", "Of ledgers", "Of regions"]

    def chapter(page: pymupdf.Page, number: int) -> None:
        name, is_first = chapters[(number - 1) // 3], number % 3 == 1
        page.insert_text((72, 80), name, fontsize=16) if is_first else page.insert_text((72, 40), name, fontsize=9)

    parsed = drawn(12, chapter, prose(y=110))
    assert [parsed.text.count(name) for name in chapters] == [1, 1, 1, 1]
    assert [section.heading for section in parsed.sections if section.heading] == chapters[1:]
    slides = drawn(8, at(72, 80, "Results", 20), prose(y=140, lines=5))
    assert left_out(slides) == "running line at the top (8 pages): Results"
    titles = drawn(
        8, lambda page, n: page.insert_text((72, 80), chapters[n // 2 % 4], fontsize=20), prose(y=140, lines=5)
    )
    assert sum(titles.text.count(name) for name in chapters) == 8


def test_a_document_of_nothing_but_equal_lines_is_read() -> None:
    assert drawn(4, at(72, 80, "See the new address of this manual.")).text.count("new address") == 4


def numbered(x: float, *, lines: int = 40, step: int = 1, size: float = 6) -> Draw:
    def draw(page: pymupdf.Page, number: int) -> None:
        for line in range(lines):
            count = (number - 1) * lines + line + 1
            if count % step == 0:
                page.insert_text((x - 3 * len(str(count)), 100 + 12 * line), str(count), fontsize=size)

    return draw


@pytest.mark.parametrize("margin", [
    [numbered(60)], [numbered(560)], [numbered(60, step=5)], [numbered(60, size=10)], [numbered(60), numbered(560)],
])  # fmt: skip
def test_line_numbers_of_review_copies_are_no_text(margin: list[Draw]) -> None:
    parsed = drawn(3, prose(), *margin)
    assert parsed.text == drawn(3, prose()).text
    assert left_out(parsed) == "line numbers in the margin (3 pages)"


def test_numbers_of_lists_tables_and_single_listings_are_text() -> None:
    def steps(page: pymupdf.Page, number: int) -> None:
        for row in range(30):
            page.insert_text((60, 100 + 14 * row), str((number - 1) * 30 + row + 1), fontsize=10)
            page.insert_text((90, 100 + 14 * row), "Close the valve of the region before you leave it.", fontsize=10)

    def table(page: pymupdf.Page, number: int) -> None:
        for row in range(30):
            for x, cell in ((60, str((number - 1) * 30 + row + 1)), (90, "valve of the north"), (300, "open")):
                page.insert_text((x, 100 + 14 * row), cell, fontsize=10)

    for draw in (steps, table):
        assert set(range(1, 91)) <= set(numbers_in(drawn(3, draw)))
    listing = drawn(4, prose(), lambda page, number: numbered(60)(page, 1) if number == 2 else None)
    assert set(range(1, 41)) <= set(numbers_in(listing))


def columns(*xs: float, lines: int = 40, words: int = 5, y: float = 120) -> Draw:
    """Draw columns of text, row by row over all of them."""

    def draw(page: pymupdf.Page, number: int) -> None:
        for line in range(lines):
            for side, x in enumerate(xs):
                first = (side * lines + line) * words
                said = " ".join(WORDS[(first + step) % len(WORDS)] for step in range(words))
                page.insert_text((x, y + 12 * line), f"{chr(97 + side)}{line:02d} {said}", fontsize=8)

    return draw


@pytest.mark.parametrize("xs", [(60, 320), (50, 225, 400)])
def test_columns_are_read_one_after_the_other_where_the_file_goes_row_by_row(xs: tuple[float, ...]) -> None:
    title = at(120, 60, "A study of places and passages over all columns of this page", 14)
    parsed = drawn(1, title, columns(*xs))
    found = re.findall(r"\b[abc]\d\d\b", parsed.text)
    assert found == [f"{side}{line:02d}" for side in "abc"[: len(xs)] for line in range(40)]
    bar = at(60, 606, "Between the two bands stands a line that reaches over the columns of the whole page.", 12)
    two = drawn(1, title, columns(*xs), bar, columns(*xs, lines=6, y=630))
    assert re.findall(r"\b[abc]\d\d\b", two.text)[-6 * len(xs) :] == [
        f"{s}{n:02d}" for s in "abc"[: len(xs)] for n in range(6)
    ]


def test_cells_of_a_table_come_row_by_row() -> None:
    def cells(page: pymupdf.Page, number: int) -> None:
        for row in range(12):
            page.insert_text((60, 300 + 14 * row), f"Region {row}", fontsize=10)
            page.insert_text(
                (320, 300 + 14 * row),
                f"Rate {row} is what the branch of the region asks for."[: 20 + 3 * row],
                fontsize=10,
            )

    found = re.findall(r"Re?g?a?t?i?o?n?e? \d+", drawn(1, prose(lines=12), cells).text)
    assert found == [f"{name} {row}" for row in range(12) for name in ("Region", "Rate")]


def cells(*rows: str, xs: tuple[float, ...] = (72, 160, 240), y: float = 300, rise: float = 0) -> Draw:
    """Draw a table cell by cell. ``|`` parts the cells of a row and ``/`` the lines of a cell.

    ``rise`` is where a cell stands in its row: 0 at the top, .5 in the middle.
    """

    def draw(page: pymupdf.Page, number: int) -> None:
        top = y
        for row in rows:
            lines = [cell.strip().split("/") for cell in row.split("|")]
            height = max(map(len, lines))
            for x, cell in zip(xs, lines, strict=True):
                for place, line in enumerate(cell):
                    page.insert_text((x, top + 12 * (place + rise * (height - len(cell)))), line, fontsize=10)
            top += 12 * height

    return draw


OPTIONS = (
    "timeout | integer | the number of seconds after which a/request is given up and tried again",
    "log level | name of/a level | how much is written to the log",
    "verify | boolean | whether the certificate of the server is/looked at before all is sent/and what is done then",
    "proxy | none | not used",
    "cache | path | where the files are kept that were read/once and did not change since",
)


def as_rows(table: tuple[str, ...]) -> list[str]:
    return [" ".join(row.replace("|", " ").replace("/", " ").split()) for row in table]


@pytest.mark.parametrize("rise", [0, 0.5])
@pytest.mark.parametrize("above", [prose(lines=12), prose(lines=16, y=109), prose(lines=0)])
def test_the_row_of_a_table_is_one_line_with_all_lines_of_its_cells(above: Draw, rise: float) -> None:
    told = drawn(1, above, cells(*OPTIONS, rise=rise), prose(y=300 + 12 * 10 + 16, lines=12)).text
    assert set(as_rows(OPTIONS)) <= set(told.split("\n"))


@pytest.mark.parametrize("table", [
    tuple(f"k{n} never | {WORDS[n]} {WORDS[n + 1]} | {WORDS[n + 2]} ridge umber" for n in range(16)),
    tuple(f"name-{n} | {('never', 'on', 'always')[n % 3]} | quartz juniper larch" for n in range(16)),
])  # fmt: skip
def test_cells_that_begin_with_small_letters_are_no_running_text(table: tuple[str, ...]) -> None:
    told = " ".join(drawn(1, prose(lines=8), cells(*table)).text.split())
    assert [row for row in as_rows(table) if row not in told] == []


def test_articles_side_by_side_captions_lists_and_named_rows_of_figures_are_no_rows() -> None:
    lines = [" ".join(WORDS[(n + step) % len(WORDS)] for step in range(8)) for n in range(5)]
    articles = [
        ["/".join([f"Article {band}{side} says", *lines, "and no more."]) for side in "abc"] for band in range(3)
    ]
    bands = (cells(" | ".join(each), xs=(40, 215, 390), y=100 + 112 * band) for band, each in enumerate(articles))
    told = drawn(1, *bands).text
    assert [part[:10] for part in told.split("\n\n")] == [f"Article {n}{side}" for n in range(3) for side in "abc"]
    caption = at(72, 300 + 12 * 10 + 13, "Table 1: all options of the service and what each of them is for")
    assert "Table 1: all options" in "\n".join(drawn(1, cells(*OPTIONS), caption).text.split("\n")[5:])
    steps = tuple(
        f"{n}. | close the valve of the region before you/leave it, and say so in the journal" for n in range(5)
    )
    assert drawn(1, cells(*steps, xs=(72, 100))).text.count("\n\n") == 4
    figures = ("ours | 0.91 0.82 0.73 0.64/0.55 0.46 0.37 0.28", "others | 0.11 0.22 0.33 0.44/0.51 0.62 0.73 0.84") * 2
    assert "0.64\n" in drawn(1, cells(*figures, xs=(72, 160), rise=0.5)).text


def test_a_footer_that_a_table_reaches_is_not_in_a_row() -> None:
    footers = at(280, 816, "Page {n} of 4"), at(72, 40, "Handbook of parts")
    parsed = drawn(4, lambda page, n: cells(*OPTIONS * 5, y=(190, 190, 216, 216)[n - 1])(page, n), *footers)
    assert "Page" not in parsed.text
    assert "page numbers (4 pages)" in left_out(parsed)


def sentence(number: int, said: str = "The pilot") -> str:
    return f"{said} moved {number * 37 + 1011} crates of oak from the northern quay to the southern warehouse by noon."


def noted(page: pymupdf.Page, x: float, lines: list[str], notes: list[str], *, y: float = 100, size: float = 7) -> None:
    """Draw lines of text, where ``^1`` is a raised mark, and footnotes below them, which begin with one."""
    for row, line in enumerate(lines):
        left = x
        for part in re.split(r"(\^\w+)", line):
            mark = part.startswith("^")
            said, font = part.lstrip("^"), 6 if mark else 10
            page.insert_text((left, y + 12 * row - 4 * mark), said, fontsize=font)
            left += pymupdf.get_text_length(said, fontsize=font)
    for row, line in enumerate(notes):
        mark, said = re.fullmatch(r"(?:\^(\w+|\*))?(.*)", line).groups("")
        at = y + 12 * len(lines) + 12 + 9 * row
        page.insert_text((x + 8, at - 3), mark, fontsize=size - 2)
        page.insert_text((x + 16, at), said, fontsize=size)


@pytest.mark.parametrize("marks", [("1", "2", "3"), ("a", "b", "c"), ("12", "13", "14")])
@pytest.mark.parametrize("columns", [1, 2])
def test_footnotes_do_not_part_a_sentence_that_goes_on_behind_them(marks: tuple[str, ...], columns: int) -> None:
    """Over the break of a column or page; each note stays on its page, and nothing is lost."""
    document = pymupdf.open()
    said = [sentence(number) for number in range(24)]
    lines = textwrap.wrap(" ".join(said), 80 // columns)
    count = len(lines) // 3
    parts = [lines[:count], lines[count : 2 * count], lines[2 * count :]]
    for number, (mark, part) in enumerate(zip(marks, parts, strict=True)):
        if number % columns == 0:
            page = document.new_page(width=595, height=842)
        part[1] += f"^{mark}"
        note = f"^{mark}{sentence(number, 'A note')}".split(" from ")
        noted(page, 60 + 240 * (number % columns), part, [note[0], f"from {note[1]}"])
    parsed = parse_pdf(document.tobytes())
    read = re.sub(r"\^\w+", "", " ".join(parsed.text.split()))
    assert [each for each in said if each not in read] == []
    for number in range(3):
        note = sentence(number, "A note")
        assert read.count(note) == 1
        at = parsed.text.index(note.split(" from ")[0])
        assert sum(start <= at for start in parsed.page_starts) == number // columns + 1


def test_only_footnotes_make_way() -> None:
    """Small print without a mark, marks that the text has not, and a sentence that ends above stay where they are."""

    def read(line: str, note: str, *, size: float = 7) -> str:
        document = pymupdf.open()
        for lines in ([sentence(1), sentence(2) + line, "The pilot weighed the"], ["crates of oak.", sentence(3)]):
            noted(
                document.new_page(width=595, height=842),
                60,
                lines,
                [note] if "pilot weighed" in lines[-1] else [],
                size=size,
            )
        return " ".join(parse_pdf(document.tobytes()).text.split())

    assert "weighed the crates of oak." in read("^1", "^1A note on oak")
    assert "weighed the crates of oak." in read("*", "^*A note on oak")
    assert "weighed the crates" not in read("^1", "A caption of oak")
    assert "weighed the crates" not in read("^1", "^2A note on oak")
    assert "weighed the crates" not in read("^1", "^1A note on oak", size=10)


@pytest.mark.parametrize(("size", "is_whole"), [(7, True), (10, False)])
def test_a_footnote_without_a_mark_parts_no_sentence_that_goes_on_on_the_next_page(
    size: int, *, is_whole: bool
) -> None:
    document = pymupdf.open()
    line = "The pilot weighed all the crates of oak that lay on the northern quay on the day before the"
    for lines, notes in (([sentence(1), line], ["The oak was felled."]), (["regatta began.", sentence(3)], [])):
        noted(document.new_page(width=595, height=842), 60, lines, notes, size=size)
    read = " ".join(parse_pdf(document.tobytes()).text.split())
    assert (f"{line} regatta began." in read) is is_whole and read.count("The oak was felled.") == 1


@pytest.mark.parametrize("box", ["In brief. The ferry is late.", "In brief, the ferry"])
def test_a_box_at_the_foot_of_the_next_page_parts_no_sentence(box: str) -> None:
    document = pymupdf.open()
    line = "The pilot weighed all the crates of oak that lay on the northern quay on the day before the"
    for lines, said in (([sentence(1), line], ""), (["regatta began.", sentence(3)], box)):
        page = document.new_page(width=595, height=842)
        page.insert_text((70, 780), said, fontsize=10)  # written first, as what is drawn on every page
        noted(page, 60, lines, [])
    read = " ".join(parse_pdf(document.tobytes()).text.split())
    assert (f"{line} regatta began." in read) is box.endswith(".") and read.count(box) == 1


def test_the_mark_of_a_footnote_is_a_word_of_its_own() -> None:
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    noted(page, 60, [sentence(1) + "^1", sentence(2)], [])
    html = f"<p style='font-size:8pt'><span style='font-size:5pt'>1</span>{sentence(3, 'Oak')}</p>"
    page.insert_htmlbox(pymupdf.Rect(60, 700, 560, 760), html)
    assert "1 Oak moved" in " ".join(parse_pdf(document.tobytes()).text.split())


@pytest.mark.parametrize(
    "header", ["Harbour Board    {mark}", "{mark}    Harbour Board", "Board    {mark}    Harbour {n}"]
)
def test_headers_with_a_fixed_part_and_the_mark_of_the_chapter_go(header: str) -> None:
    chapters = ["1 Of valves", "2 Of pumps", "3 Of ledgers", "4 Of regions"]

    def chapter(page: pymupdf.Page, number: int) -> None:
        name = chapters[(number - 1) // 2]
        page.insert_text((72, 40), header.format(mark=name.upper(), n=number), fontsize=9)
        page.insert_text((72, 80), name, fontsize=16) if number % 2 else None

    parsed = drawn(8, chapter, prose(y=110))
    assert "Harbour" not in parsed.text and "OF PUMPS" not in parsed.text and "2 Of pumps" in parsed.text
    assert "Harbour" in left_out(parsed) and not parsed.metadata.get("authors")
    other = drawn(
        8, lambda page, n: page.insert_text((72, 40), f"Berth {n * n + 7}: {WORDS[n]} oak", fontsize=9), prose(y=110)
    )
    assert other.text.count("Berth") == 8, "what is said nowhere else stays"


FIGURE = ["Figure 1: The quay as it stood at noon,", "with all its crates of oak and their owners."]
TABLE = ["TABLE II", "Key       Verb       Number", "k1        moved      1011", "k2        weighed    1022"]


LONG = "k3        weighed all crates of their owners"
"""A row with two cells that is as wide as the text of a column."""


@pytest.mark.parametrize("floats", [FIGURE, TABLE, [*FIGURE, "", *TABLE], [*TABLE, LONG]])
@pytest.mark.parametrize(("columns", "is_above"), [(1, True), (1, False), (2, True), (2, False)])
def test_figures_and_tables_do_not_part_a_sentence_that_goes_on_behind_them(
    floats: list[str], columns: int, *, is_above: bool
) -> None:
    """At the head or the foot of a column or page; what they say is read once, before the sentence."""
    document = pymupdf.open()
    said = [sentence(number) for number in range(24)]
    lines = textwrap.wrap(" ".join(said), 80 // columns)
    parts = [lines[: len(lines) // 2], lines[len(lines) // 2 :]]
    for number, part in enumerate(parts):
        if number % columns == 0:
            page = document.new_page(width=595, height=842)
        drawn = ["", *part]
        if number == is_above:
            drawn = [*floats, "", "", *part] if is_above else [*part, "", "", *floats]
        for row, line in enumerate(drawn):
            for cell in re.finditer(r"\S+(?: \S+)*", line):
                left = 60 + 280 * (number % columns) + 6 * cell.start()
                page.insert_text((left, 100 + 13 * row), cell[0], fontsize=10)
    read = " ".join(parse_pdf(document.tobytes()).text.split())
    assert [each for each in said if each not in read] == []
    for line in filter(None, floats):
        assert read.count(" ".join(line.split())) == 1


def test_only_figures_with_a_caption_make_way() -> None:
    def read(
        *above: str,
        said: str = "The pilot weighed all of the crates that had come over night from the northern shore to the",
    ) -> str:
        document = pymupdf.open()
        for lines in ([sentence(1), sentence(2), said], [*above, "", "", "southern warehouse by noon.", sentence(3)]):
            page = document.new_page(width=595, height=842)
            for row, line in enumerate(lines):
                page.insert_text((60, 100 + 13 * row), line, fontsize=10)
        return " ".join(parse_pdf(document.tobytes()).text.split())

    assert "shore to the southern warehouse" in read("Fig. 3. The quay")
    assert "shore to the southern" not in read("The quay as it stood at noon, with all its crates of oak and owners.")
    assert "The southern" not in read("Fig. 3. The quay", said="The")
    assert read("Fig. 3. The quay", said="All was well.").endswith(
        f"Fig. 3. The quay southern warehouse by noon. {sentence(3)}"
    )


@pytest.mark.parametrize("header", ["Code | Owner/of the file | Remark", "Code | Owner | Remark"])
def test_a_row_of_a_table_is_whole_where_the_next_page_repeats_the_header_within_it(header: str) -> None:
    whole = [f"Q-10{n} | Griffin | {sentence(n)[:44]}/{sentence(n)[44:]}" for n in range(40)]
    parts = [[header, *whole[:10], whole[10].split("/")[0]], [f"{header}/{whole[10].split('/')[1]}"], whole[11:]]
    if "/" in header:  # the rest stands below both lines of the header
        parts[1] = [f"{header} ", f" | | {whole[10].split('/')[1]}"]
    document = pymupdf.open()
    for rows in (parts[0], [*parts[1], *parts[2]]):
        cells(*rows, xs=(72, 140, 240), y=90)(document.new_page(width=595, height=1200), 1)
    told = parse_pdf(document.tobytes()).text
    assert [row for row in as_rows(tuple(whole)) if row not in told] == []
    assert len(re.findall("Code", told)) == 2


def test_a_row_is_whole_where_two_pages_begin_with_the_same_rest_of_one() -> None:
    rows = [f"Q-10{n} | Griffin | to be seen by the/warden at noon" for n in range(30)]
    document = pymupdf.open()
    for at in (0, 10, 20):
        rest = ["Code | Owner | Remark/warden at noon"] if at else ["Code | Owner | Remark"]
        page = [*rest, *rows[at + bool(at) : at + 10], rows[min(at + 10, 29)].split("/")[0]]
        cells(*page, xs=(72, 140, 240), y=90)(document.new_page(width=595, height=1200), 1)
    told = parse_pdf(document.tobytes()).text
    assert [row for row in as_rows(tuple(rows[:29])) if row not in told] == []


def test_what_says_below_a_table_that_it_goes_on_is_no_row() -> None:
    def page(page: pymupdf.Page, number: int) -> None:
        low = 90 + 12 * (40 - number % 3)
        cells(
            *(f"Q-{number}{n} | Griffin | {sentence(n)[:40]}" for n in range(40 - number % 3)), xs=(72, 140, 240), y=90
        )(page, number)
        page.insert_text((320, low + 18), "continued on the next page", fontsize=10)

    parsed = drawn(6, page, at(290, 700, "{n}"))
    assert "continued" not in parsed.text and "continued on the next page" in left_out(parsed)


@pytest.mark.parametrize(("x", "y"), [(296, 690), (500, 690), (72, 80)])
def test_the_number_of_a_page_without_a_header_goes_on_counting(x: float, y: float) -> None:
    """The first pages of chapters have their number elsewhere; other numbers there are text."""

    def chapter(page: pymupdf.Page, number: int) -> None:
        if number % 4 == 1:
            page.insert_text((x, y), f"{number + 6}", fontsize=10)
        else:
            page.insert_text((72, 40), f"Of valves {number + 6}", fontsize=10)

    body = prose(lines=38)
    parsed = drawn(9, chapter, body)
    assert parsed.text == drawn(9, body).text
    assert "page numbers (3 pages)" in left_out(parsed)
    other = drawn(9, lambda page, n: page.insert_text((x, y), "4711") if n == 5 else chapter(page, n), body)
    assert "4711" in other.text


@pytest.mark.parametrize("x", [470, 20])
def test_a_note_in_the_margin_parts_no_sentence(x: float) -> None:
    def note(page: pymupdf.Page, number: int) -> None:
        for line, said in enumerate(("Copper", "was cheaper", "than iron")):
            page.insert_text((x, 160 + 10 * line), said, fontsize=7)

    def woven(page: pymupdf.Page, number: int) -> None:
        body = prose(100, lines=12, words=7)
        body(page, number)
        note(page, number)

    told = drawn(1, woven).text
    assert " ".join(WORDS[step % len(WORDS)] for step in range(84)) in " ".join(told.split())
    assert "Copper was cheaper than iron" in " ".join(told.split())


def test_a_label_left_of_a_paragraph_and_the_cells_of_a_small_table_stay_where_they_are() -> None:
    cells = [at(x, 300, said, 7) for x, said in ((40, "valve"), (200, "closed within"), (500, "9 s"))]
    told = drawn(1, prose(100, lines=12, words=7), at(60, 160, "pump", 7), *cells).text
    assert re.search(r"valve\s+closed within\s+9 s", told)
    assert told.index("pump") < told.index("valve")
