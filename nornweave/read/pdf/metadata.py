"""Read a PDF's metadata from its properties, stamps and first page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from nornweave.core.types import JsonValue
from nornweave.read.pdf.glyphs import PdfPage
from nornweave.read.pdf.outline import Outline

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
