"""``HIERARCHICAL_SECTIONS``, academic form: papers and questions with answers, by the sections their parser found."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from nornweave.core.text.spans import TokenIndex, split, strip_lines
from nornweave.core.types import Chunk, Document, JsonValue, Metadata, Section, Span, freeze

VERSION = "papers-2"

_DOCUMENT_KEYS = ("source_type", "title", "authors", "publication_date", "doi", "venue", "citation_count", "tags")


def chunk_papers(
    document: Document, index: TokenIndex, *, section_limit: int = 1024, limit: int = 512, abstract_limit: int = 512
) -> Iterator[Chunk]:
    """Cut a paper at its sections, or a thread at its answers. Long parts are cut at paragraphs.

    A heading that has only subsections under it goes with the first subsection.

    Args:
        document: a document whose ``sections`` cover its text. Without sections the whole text is one section.
        index: the token index of ``document.text``.
        section_limit: the maximum number of tokens in a chunk of a section of level 1 or of the references.
        limit: the maximum number of tokens in a chunk of a deeper section, a question or an answer.
        abstract_limit: the maximum number of tokens in a chunk of the abstract. No other text is in such a chunk.

    Yields:
        Chunks in order that leave out only blank space.
    """
    for section, path, whole in _parts(document, index, limit):
        for piece in split(whole, index, _limit(section, section_limit, limit, abstract_limit)):
            span = strip_lines(document.text, piece)
            if len(span):
                yield _chunk(document, section, path, span, index)


def _limit(section: Section, section_limit: int, limit: int, abstract_limit: int) -> int:
    if section.kind == "abstract":
        return abstract_limit
    if section.kind in {"question", "answer"}:
        return limit
    return section_limit if section.level == 1 or section.kind == "references" else limit


def _parts(document: Document, index: TokenIndex, limit: int) -> Iterator[tuple[Section, Sequence[str], Span]]:
    """Yield the sections, each with its headings and its span.

    A heading without text joins the subsection below it.
    """
    sections: Sequence[Section] = document.sections or (Section(span=Span(0, len(document.text)), heading=""),)
    above: list[Section] = []
    start = 0
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        while above and above[-1].level >= section.level:
            above.pop()
        above += [section] if section.heading else []
        span = Span(start, section.span.end)
        text = document.text[section.span.start : section.span.end]
        is_bare = section.kind == "section" and text.strip() == section.heading
        if is_bare and following and following.level > section.level and index.count(span) < limit:
            continue
        yield section, [each.heading for each in above], span
        start = section.span.end


def _chunk(document: Document, section: Section, path: Sequence[str], span: Span, index: TokenIndex) -> Chunk:
    page = page_of(document.page_starts, span.start)
    return Chunk(
        span=span,
        content=document.text[span.start : span.end],
        token_count=index.count(span),
        context="\n".join(line for line in _context(document.title, path, section.context) if line),
        title=section.heading or document.title,
        section=" > ".join(path) or None,
        page=page,
        metadata=_metadata(document, section, page),
    )


def _context(title: str | None, path: Sequence[str], more: str) -> tuple[str, str, str]:
    """Return the title, the headings and the context ``more`` of a section. Text that would be repeated is left out."""
    shown = [heading for heading in path if heading != title and not (more and more.startswith(heading))]
    return ("" if title and more.startswith(title) else title or "", " > ".join(shown), more)


def _metadata(document: Document, section: Section, page: int | None) -> Metadata:
    values: dict[str, JsonValue] = {key: document.metadata.get(key) for key in _DOCUMENT_KEYS}
    values["title"] = document.title or values["title"]
    recognised = document.metadata.get("ocr_pages")
    values["ocr"] = True if isinstance(recognised, Sequence) and page in recognised else None
    values["section_name"] = section.heading or None
    return freeze({**values, **section.metadata})


def page_of(page_starts: Sequence[int], offset: int) -> int | None:
    """Return the number of the page with the character at ``offset``, from 1; ``None`` for a document without pages."""
    return max(1, bisect_right(page_starts, offset)) if page_starts else None
