"""Read a PDF file: text in reading order, with sections and pages, of scanned pages too.

Its metadata are read from its properties, stamps and first page. The Tesseract inside MuPDF recognises scanned pages.
MuPDF 1.28 reads its language data, all that has to be installed, from a folder (Debian: package ``tesseract-ocr``); no
program is started, no file written.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from statistics import median
from threading import Lock

from nornweave.core.errors import DocumentError
from nornweave.core.process import allow_more_cpu
from nornweave.core.text.terminal import counted
from nornweave.core.types import JsonValue, Section, Span, freeze
from nornweave.read.parsed import OCR_SECONDS, PDF_SECONDS_AT_MOST, Parsed
from nornweave.read.pdf.layout import PdfPage, read_page
from nornweave.read.pdf.margins import without_margins
from nornweave.read.pdf.paragraphs import (
    Hyphens,
    Outline,
    Paragraph,
    body_size,
    continues,
    interrupted,
    last_sentence,
    letters_of,
    outline_of,
    paragraphs_of,
    with_whole_rows,
)
from nornweave.read.pdf.port import PageGlyphs, PdfFile, load_library

MAX_SCANNED_PAGES = 50
"""Of one document; a page takes 0.5 to 4 s."""
MAX_LANGUAGES = 4
"""Each makes recognition slower."""
_DPI = 300
_MAX_PIXELS = 20_000_000
_FOLDERS = ("/usr/share/tesseract-ocr/*/tessdata", "/usr/share/tessdata", "/usr/local/share/tessdata",
            "/opt/homebrew/share/tessdata")  # fmt: skip
_NO_LANGUAGES = frozenset({"osd", "equ", "snum"})

NEEDS_PYMUPDF = "OCR needs PyMuPDF; install the extra 'pymupdf' and sync again, or run OCR first (ocrmypdf)"
INSTALL = "install the language data of Tesseract (Debian: tesseract-ocr) and sync again, or run OCR first (ocrmypdf)"


@dataclass(frozen=True, slots=True)
class Tesseract:
    """The installed language data of Tesseract: its folder and its languages, with English first."""

    folder: str
    languages: tuple[str, ...]

    @property
    def version(self) -> str:
        """A version that changes whenever a page may be read differently."""
        return f"ocr-2-{'+'.join(self.languages)}"


@cache
def installed() -> Tesseract | None:
    """Return the language data in ``TESSDATA_PREFIX`` or at the usual places; ``None`` if none is installed."""
    stated = os.environ.get("TESSDATA_PREFIX")
    folders = [Path(stated)] if stated else [found for place in _FOLDERS for found in sorted(_matching(place))]
    for folder in reversed(folders):
        names = {file.stem for file in folder.glob("*.traineddata")} - _NO_LANGUAGES
        if names:
            ordered = sorted(names, key=lambda name: (name != "eng", name))
            return Tesseract(str(folder), tuple(ordered[:MAX_LANGUAGES]))
    return None


def _matching(place: str) -> list[Path]:
    return list(Path("/").glob(place.removeprefix("/")))


def version() -> str:
    """Return a version that changes whenever scanned pages may be read differently."""
    found = installed()
    return found.version if found else "no-ocr"


@dataclass(slots=True)
class Recogniser:
    """Recognises the pages of one document until the limit of pages or of processor time is reached.

    Attributes:
        has_ocr: whether the PDF library that opened the file can recognise pages.
        recognised: the numbers of the pages that were recognised.
        left_out: the numbers of the pages that were not recognised.
    """

    tesseract: Tesseract | None
    has_ocr: bool = True
    recognised: list[int] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)
    _spent_s: float = 0.0

    @property
    def is_ready(self) -> bool:
        """Tell whether pages can be recognised at all."""
        return self.has_ocr and self.tesseract is not None

    @property
    def remedy(self) -> str:
        """Return what a person can do so that scanned pages are read."""
        return INSTALL if self.has_ocr else NEEDS_PYMUPDF

    def read(self, page: PdfPage, file: PdfFile) -> PdfPage:
        """Return the page with its recognised text. If a limit is reached, return the page unchanged."""
        if (
            not self.has_ocr
            or self.tesseract is None
            or len(self.recognised) >= MAX_SCANNED_PAGES
            or self._spent_s > OCR_SECONDS
        ):
            self.left_out.append(page.number)
            return page
        if not self.recognised:
            allow_more_cpu(OCR_SECONDS)
        before = time.process_time()
        languages, folder = "+".join(self.tesseract.languages), self.tesseract.folder
        glyphs = file.recognise(page.number - 1, _dpi(page), languages, folder)
        self._spent_s += time.process_time() - before
        self.recognised.append(page.number)
        return replace(read_page(page.number, _levelled(glyphs)), images=page.images)


def _dpi(page: PdfPage) -> int:
    """Return a resolution at which the page has at most ``_MAX_PIXELS`` pixels."""
    inches = max(1.0, page.width * page.height) / 72**2
    return max(36, min(_DPI, int(math.sqrt(_MAX_PIXELS / inches))))


def _levelled(glyphs: PageGlyphs) -> PageGlyphs:
    """Return the page with the same size for all words, because OCR gives each word a slightly different size."""
    sizes = [run.size for lines in glyphs.blocks for line in lines for run in line.runs]
    usual = median(sizes) if sizes else 0.0
    blocks = [
        [replace(line, runs=[replace(run, size=usual) for run in line.runs]) for line in lines]
        for lines in glyphs.blocks
    ]
    return replace(glyphs, blocks=blocks)


VERSION = "pdf-14"

MAX_PAGES = 2000
MAX_LETTERS = 20_000_000

_ONE_AT_A_TIME = Lock()  # neither PyMuPDF 1.28 nor PDFium supports threads

_HEADER_ZONE = 1024  # bytes in which ISO 32000-1, annex H.3, lets "%PDF-" begin
_UNREADABLE = 0.5  # of the letters, from which the text layer is useless
_LETTERS_PER_PAGE = 5  # fewer on average: stamps on scanned pages
_NAMED_PAGES = 20

_ARXIV = re.compile(r"arXiv:(?P<id>\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d{1,2})?")
_ARXIV_DATE = re.compile(r"\b[0-3]?\d (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (?:19|20)\d\d\b")
_DOI = re.compile(r"(?<![\w.])10\.\d{4,9}/[\w.;()/:<>+-]{1,200}")
_VENUE = re.compile(
    r"(?P<full>Proceedings of (?:the )?[^,.;]{5,150})|conference paper at (?P<at>[A-Z][\w ]{2,40}\d{4})"
    r"|\((?P<short>(?:NIPS|NeurIPS|ICML|ICLR|ACL|EMNLP|NAACL|CVPR|ICCV|ECCV|AAAI|IJCAI|KDD|SIGIR) ?\d{4})\)"
)
_PDF_DATE = re.compile(r"D:(\d{8})(\d{6})?(?:([+-]\d\d)'?(\d\d)?)?")
_NO_TITLE = re.compile(
    r"untitled|microsoft (?:word|powerpoint)|\.(?:docx?|pptx?|tex|dvi|pdf|indd|rtf|odt|ps|eps)$|^[\W\d_]*$|^/",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Deadline:
    """The time at which reading stops, by ``time.monotonic()``."""

    at: float


def parse_pdf(raw: bytes, *, deadline_s: float = PDF_SECONDS_AT_MOST) -> Parsed:
    """Read a paper.

    ``metadata`` has what the paper states: ``source_type`` (``arxiv_paper`` or ``paper``), ``title``, ``authors``,
    ``publication_date``, ``doi``, ``venue`` and ``tags``. The publication date is that of the arXiv stamp, or else the
    day on which the file was made. Scanned pages are read by OCR, and ``ocr_pages`` has their numbers. ``left_out``
    names the pages that were not read, and the text that was removed from the page margins.

    Args:
        deadline_s: the time limit, in seconds. It is checked after every page. OCR has a separate limit.

    Returns:
        The text without running headers and page numbers, its sections, which cover the whole text, and the offset of
        each page.

    Raises:
        DocumentError: the file is not a PDF, is encrypted, truncated or broken, has no pages or no text layer, is too
            long or takes too much time. Also raised if no library for PDF files is installed.
    """
    library = load_library()
    until = _Deadline(time.monotonic() + deadline_s)
    scanned = Recogniser(installed(), has_ocr=library.has_ocr)
    _check_bytes(raw)
    with _ONE_AT_A_TIME, library.opened(raw) as file:
        _check_file(file, len(raw))
        pages = list(_pages(file, until, scanned))
        declared, contents = file.properties, file.bookmarks
    _check_text(pages, "OCR finds no text in them" if scanned.recognised else scanned.remedy)
    return _parsed(pages, declared, contents, until, scanned)


def _unread(scanned: Recogniser) -> Iterator[str]:
    """Yield a phrase for each scanned page that was not read. If there are many, the last phrase counts the rest."""
    reason = f"beyond {MAX_SCANNED_PAGES} pages or the time for OCR" if scanned.is_ready else scanned.remedy
    yield from (f"page {number}: scanned; {reason}" for number in scanned.left_out[:_NAMED_PAGES])
    if (more := len(scanned.left_out) - _NAMED_PAGES) > 0:
        yield f"{more} more scanned pages"


def _unseen(pages: Sequence[PdfPage]) -> Iterator[str]:
    """Yield a phrase for each page with hidden text. If there are many such pages, the last phrase counts the rest."""
    hidden = [page for page in pages if page.unseen]
    yield from (f"page {page.number}: hidden text ({counted(page.unseen, 'run')})" for page in hidden[:_NAMED_PAGES])
    if (more := len(hidden) - _NAMED_PAGES) > 0:
        yield f"{more} more pages with hidden text"


def _check_bytes(raw: bytes) -> None:
    if b"%PDF-" not in raw[:_HEADER_ZONE]:
        raise DocumentError(f"not a PDF: begins with {raw[:12]!r}, expected %PDF-; check what the file really is")


def _check_file(file: PdfFile, size: int) -> None:
    if file.is_truncated:
        raise DocumentError(
            f"truncated PDF: {size} bytes without the closing %%EOF; download or export the whole file again"
        )
    if file.page_count == 0:
        raise DocumentError("no pages: the PDF is empty or damaged beyond repair; export or download it again")
    if file.page_count > MAX_PAGES:
        raise DocumentError(f"too long: {file.page_count} pages, at most {MAX_PAGES} are read; split the file")


def _pages(file: PdfFile, until: _Deadline, scanned: Recogniser) -> Iterator[PdfPage]:
    letters = 0
    for number in range(file.page_count):
        page = read_page(number + 1, file.page(number))
        if _is_unread(page):
            page = replace(page, images=file.images_on(number))
            if page.images or page.unreadable:
                started = time.monotonic()
                page = scanned.read(page, file)
                until.at += time.monotonic() - started
        letters += page.letters
        if letters > MAX_LETTERS:
            raise DocumentError(f"too long: over {MAX_LETTERS} letters up to page {number + 1}; split the file")
        _check_deadline(until, f"page {number + 1} of {file.page_count}")
        yield page


def _is_unread(page: PdfPage) -> bool:
    """Tell whether a page has almost no text layer, so that OCR is needed."""
    return page.letters < _LETTERS_PER_PAGE or page.unreadable > _UNREADABLE * page.letters


def _check_deadline(until: _Deadline, place: str) -> None:
    if time.monotonic() > until.at:
        raise DocumentError(
            f"too slow: the time for one PDF ran out at {place}; split the file or print it to a new PDF"
        )


def _check_text(pages: Sequence[PdfPage], remedy: str) -> None:
    letters, unreadable = sum(p.letters for p in pages), sum(p.unreadable for p in pages)
    scanned = sum(p.images > 0 for p in pages)
    if letters < _LETTERS_PER_PAGE * len(pages) and scanned:
        raise DocumentError(f"no text layer: looks scanned ({len(pages)} pages, {scanned} only images); {remedy}")
    if not any(page.blocks for page in pages) and not unreadable:
        raise DocumentError(
            f"no text: all {len(pages)} pages are blank, drawings or damaged; open it in a viewer, or exclude it"
        )
    if unreadable > _UNREADABLE * letters or not any(page.blocks for page in pages):
        raise DocumentError(
            f"no readable text: {unreadable} of {letters} letters have no Unicode value in their fonts; {remedy}"
        )


def _parsed(
    pages: Sequence[PdfPage],
    declared: Mapping[str, str],
    contents: Sequence[tuple[int, str]],
    until: _Deadline,
    scanned: Recogniser,
) -> Parsed:
    body = body_size(pages)
    paragraphs: list[Paragraph] = []
    texts, left_out = without_margins(pages, body)
    for page, blocks in zip(pages, texts, strict=True):
        paragraphs += paragraphs_of(page, blocks)
        _check_deadline(until, f"page {page.number}")
    paragraphs = with_whole_rows(paragraphs)
    title = declared_title(declared.get("title", ""), contents)
    bookmarks = {letters_of(name): level for level, name in contents if name != title}
    height = next((page.height for page in pages if page.blocks), 0.0)
    outline = outline_of(paragraphs, body, height, bookmarks, title)
    text, starts, page_starts = _assemble(paragraphs, {h.paragraph for h in outline.headings}, len(pages))
    if not text.strip():
        raise DocumentError(f"no text: nothing but page numbers on {len(pages)} pages; nothing to ingest")
    first_page = page_text(pages[0])
    metadata = {
        **metadata_of(outline, declared, first_page),
        "ocr_pages": tuple(scanned.recognised) or None,
        "left_out": (*left_out, *_unread(scanned), *_unseen(pages)) or None,
    }
    return Parsed(
        text=text,
        sections=tuple(_sections(len(text), starts, outline)),
        page_starts=page_starts,
        title=outline.title,
        updated_at=date_of(declared.get("modDate", "")) or date_of(declared.get("creationDate", "")),
        url=url_of(first_page, metadata.get("doi")),
        metadata=freeze(metadata),
    )


def _assemble(
    paragraphs: Sequence[Paragraph], headings: set[int], page_count: int
) -> tuple[str, list[int], tuple[int, ...]]:
    """Join paragraphs to one text. Return it with the offsets of all paragraphs and of all pages.

    A sentence may be interrupted by footnotes, figures or tables. Its two parts are joined after these, so that no text
    is moved to another page.
    """
    hyphens = Hyphens(line for paragraph in paragraphs for row in paragraph.rows for line in row.lines)
    parts: list[str] = []
    length = 0
    starts: list[int] = []
    pages: dict[int, int] = {}
    rests = interrupted(paragraphs, headings)
    begun = {rest: above for above, rest in rests.items()}
    waiting = ""
    for index, paragraph in enumerate(paragraphs):
        separator = "\n\n" if index else ""
        text = _paragraph_text(paragraph, hyphens)
        above = index - 1
        if waiting and index in begun:
            parts += (separator, waiting)
            length += len(separator) + len(waiting)
            above, waiting = begun[index], ""
        if index and not {above, index} & headings and continues(paragraphs[above], paragraph):
            before = parts[-1]
            parts[-1], separator = hyphens.seam(before, text)
            length -= len(before) - len(parts[-1])
        if index in rests:
            cut = last_sentence(text)
            if cut or separator == "\n\n":
                text, waiting = text[:cut].rstrip(), text[cut:]
                separator = separator if text else ""
        starts.append(length + len(separator))
        pages.setdefault(paragraph.page, starts[-1])
        parts += (separator, text)
        length = starts[-1] + len(text)
    whole = "".join(parts)
    following = len(whole)
    page_starts = []
    for number in range(page_count, 0, -1):
        following = pages.get(number, following)
        page_starts.append(following)
    if page_starts:
        page_starts[-1] = 0
    return whole, starts, tuple(reversed(page_starts))


def _paragraph_text(paragraph: Paragraph, hyphens: Hyphens) -> str:
    if paragraph.keeps_lines:
        return "\n".join(hyphens.joined(row.lines) for row in paragraph.rows)
    return hyphens.joined(row.text for row in paragraph.rows)


def _sections(end: int, starts: Sequence[int], outline: Outline) -> Iterator[Section]:
    marks = [starts[heading.paragraph] for heading in outline.headings] + [end]
    front = min(starts[outline.front], marks[0]) if outline.front < len(starts) else marks[0]
    if front and outline.front:
        yield Section(span=Span(0, front), heading="", kind="front")
    if front < marks[0]:
        yield Section(span=Span(front, marks[0]), heading="")
    for heading, start, following in zip(outline.headings, marks, marks[1:], strict=False):
        if start < following:
            yield Section(span=Span(start, following), heading=heading.text, level=heading.level, kind=heading.kind)


def page_text(page: PdfPage) -> str:
    """Return all text of a page in the order of the file. Running headers and stamps are included."""
    return "\n".join(f.text for block in page.blocks for f in block.fragments)


def metadata_of(outline: Outline, declared: Mapping[str, str], first_page: str) -> dict[str, JsonValue]:
    """Return the metadata of a paper: ``source_type``, ``title``, ``authors``, ``tags`` and others.

    A value is ``None`` if the paper does not state it. ``declared`` has the properties of the file.
    """
    arxiv = _ARXIV.search(first_page)
    authors = outline.authors or tuple(_declared_authors(declared.get("author", "")))
    return {
        "source_type": "arxiv_paper" if arxiv else "paper",
        "title": outline.title,
        "authors": authors or None,
        "publication_date": _publication_date(arxiv, declared),
        "doi": _doi(first_page, declared, arxiv),
        "venue": _venue(first_page),
        "tags": outline.keywords or tuple(_declared_tags(declared.get("keywords", ""))) or None,
    }


def _publication_date(arxiv: re.Match[str] | None, declared: Mapping[str, str]) -> str | None:
    if arxiv:
        stamp = _ARXIV_DATE.search(arxiv.string[arxiv.end() : arxiv.end() + 60])
        with suppress(ValueError):
            return datetime.strptime(stamp[0], "%d %b %Y").date().isoformat() if stamp else None  # noqa: DTZ007
    made = date_of(declared.get("creationDate", ""))
    return made.date().isoformat() if made else None


def _doi(first_page: str, declared: Mapping[str, str], arxiv: re.Match[str] | None) -> str | None:
    for place in (declared.get("subject", ""), declared.get("keywords", ""), first_page.split("\nReferences", 1)[0]):
        match = _DOI.search(place)
        if match:
            return match.group().rstrip(".,;:)>")
    return f"10.48550/arXiv.{arxiv['id']}" if arxiv else None


def _venue(first_page: str) -> str | None:
    match = _VENUE.search(first_page.replace("\n", " "))
    return (match["full"] or match["at"] or match["short"]).strip() if match else None


def url_of(first_page: str, doi: JsonValue) -> str | None:
    """Return the web address of the paper at arXiv or by its DOI; ``None`` if both are unknown."""
    arxiv = _ARXIV.search(first_page)
    if arxiv:
        return f"https://arxiv.org/abs/{arxiv['id']}"
    return f"https://doi.org/{doi}" if doi else None


def declared_title(title: str, contents: Sequence[tuple[int, str]]) -> str | None:
    """Return the title in the file's properties, or else the only bookmark at the top level.

    A title that names a file or a program is ignored. ``None`` if there is no usable title.
    """
    tops = [name for level, name in contents if level == 1]
    for candidate in (title, tops[0] if len(tops) == 1 else ""):
        text = " ".join(candidate.split())
        if 5 < len(text) < 400 and " " in text and not _NO_TITLE.search(text):
            return text
    return None


def _declared_authors(author: str) -> list[str]:
    names = re.split(r"\s*;\s*|\s*,\s*(?:and\s+)?|\s+and\s+", author) if len(author) < 2000 else []
    return [name for name in names if len(name) > 2 and re.search(r"[^\W\d_]", name)]


def _declared_tags(keywords: str) -> list[str]:
    return [word for word in re.split(r"\s*[,;]\s*", keywords.strip()) if 1 < len(word) < 60][:20]


def date_of(value: str) -> datetime | None:
    """Return a date such as ``D:20190603131705-04'00'`` in UTC; ``None`` if the value is not a date."""
    match = _PDF_DATE.match(value)
    if match is None:
        return None
    zone = f"{match[3]}{match[4] or '00'}" if match[3] else "+0000"
    try:
        return datetime.strptime(f"{match[1]}{match[2] or '000000'}{zone}", "%Y%m%d%H%M%S%z").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
