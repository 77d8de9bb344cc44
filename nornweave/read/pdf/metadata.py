"""Read a PDF's metadata from its properties, stamps and first page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone

from nornweave.core.types import JsonValue
from nornweave.read.pdf.glyphs import PdfPage
from nornweave.read.pdf.outline import Outline

_ARXIV = re.compile(r"arXiv:(?P<id>\d{4}\.\d{4,5}|[a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d{1,2})?")
_ARXIV_DATE = re.compile(
    r"\b(?P<day>[12]?\d|3[01]) (?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (?P<year>(?:19|20)\d\d)\b"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DOI = re.compile(r"(?<![\w.])10\.\d{4,9}/[\w.;()/:<>+-]{1,200}")
_VENUE = re.compile(
    r"(?P<full>Proceedings of (?:the )?[^,.;]{5,150})|conference paper at (?P<at>[A-Z][\w ]{2,40}\d{4})"
    r"|\((?P<short>(?:NIPS|NeurIPS|ICML|ICLR|ACL|EMNLP|NAACL|CVPR|ICCV|ECCV|AAAI|IJCAI|KDD|SIGIR) ?\d{4})\)"
)
_PDF_DATE = re.compile(
    r"D:(?P<y>\d{4})(?P<mo>\d\d)?(?P<d>\d\d)?(?P<h>\d\d)?(?P<mi>\d\d)?(?P<s>\d\d)?"
    r"(?:(?P<sign>[+-])(?P<oh>\d\d)'?(?P<om>\d\d)?)?"
)
_NO_TITLE = re.compile(
    r"untitled|microsoft (?:word|powerpoint)|\.(?:docx?|pptx?|tex|dvi|pdf|indd|rtf|odt|ps|eps)$|^[\W\d_]*$|^/",
    re.IGNORECASE,
)


def page_text(page: PdfPage) -> str:
    """Return all text of a page in the file's order, running headers and stamps included."""
    return "\n".join(f.text for block in page.blocks for f in block.fragments)


def metadata_of(outline: Outline, declared: Mapping[str, str], first_page: str) -> dict[str, JsonValue]:
    """Return the metadata of a paper, with ``None`` for what it does not say."""
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
        return f"{stamp['year']}-{_MONTHS.index(stamp['month']) + 1:02d}-{int(stamp['day']):02d}" if stamp else None
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
    """Return the paper's page at arXiv or its DOI's."""
    arxiv = _ARXIV.search(first_page)
    if arxiv:
        return f"https://arxiv.org/abs/{arxiv['id']}"
    return f"https://doi.org/{doi}" if doi else None


def declared_title(title: str, contents: Sequence[tuple[int, str]]) -> str | None:
    """Return the title that the file declares, or its only top bookmark, unless it names a file or a program."""
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
    """Read "D:20190603131705-04'00'" as UTC; ``None`` when it is no date."""
    match = _PDF_DATE.match(value)
    if match is None:
        return None
    part = {key: int(text) for key, text in match.groupdict().items() if text and key != "sign"}
    offset = timedelta(hours=part.get("oh", 0), minutes=part.get("om", 0)) * (-1 if match["sign"] == "-" else 1)
    try:
        moment = datetime(
            part["y"],
            part.get("mo", 1),
            part.get("d", 1),
            part.get("h", 0),
            part.get("mi", 0),
            part.get("s", 0),
            tzinfo=timezone(offset),
        )
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
