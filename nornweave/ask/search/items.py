"""Make items with citations from chunks of a generation, and the addresses that open their passages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from urllib.parse import quote

from nornweave.ask.search.records import Citation, Explanation, RecallItem, SourceScore
from nornweave.ask.search.search import SearchContext
from nornweave.config.base import is_web_address
from nornweave.core.text.dates import dated
from nornweave.core.types import ANCHOR, Domain, Fact, Metadata
from nornweave.index.port import Vectors
from nornweave.index.records import StoredChunk

NO_SOURCES: Mapping[str, SourceScore] = MappingProxyType({})


def citation_of(domain: Domain, chunk: StoredChunk, verified_at: datetime | None = None) -> Citation:
    """Return the citation of a chunk. Messages and pages are cited instead of lines of extracted text."""
    line_range = None if chunk.message_ids or chunk.page else chunk.line_range
    return Citation(
        domain_id=domain,
        source_id=chunk.source_id,
        source_path=chunk.path,
        timestamp=dated(domain, chunk.metadata, chunk.updated_at) or chunk.updated_at,
        line_range=line_range,
        char_range=chunk.char_range,
        page=chunk.page,
        section=chunk.section,
        message_ids=chunk.message_ids or None,
        url=passage_url(chunk.url, chunk.metadata, line_range=line_range, message_ids=chunk.message_ids),
        title=chunk.title,
        revision=chunk.revision,
        stale=chunk.stale,
        verified_at=verified_at,
    )


def item_of(
    context: SearchContext,
    chunk: StoredChunk,
    score: float,
    *,
    sources: Mapping[str, SourceScore] = NO_SOURCES,
    rerank_score: float | None = None,
    explanation: Explanation | None = None,
    vector: Vectors | None = None,
    folded: Sequence[StoredChunk] = (),
    told: Fact | None = None,
) -> RecallItem:
    """Return a chunk as an item with its score, how it was found, and the chunks folded behind it."""
    return RecallItem(
        chunk_id=chunk.chunk_id,
        content=chunk.content,
        score=score,
        citation=citation_of(context.domain, chunk, context.verified.at(chunk.source_id, chunk.path)),
        sources=sources,
        rerank_score=rerank_score,
        metadata=chunk.metadata,
        explanation=explanation,
        facts=chunk.facts,
        vector=vector,
        folded=tuple(citation_of(context.domain, each) for each in folded),
        told=told,
    )


_COMMIT = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of a repository host's addresses of files and lines.

    Attributes:
        place: the part between host and path in the address of a file at a commit.
        one, several: the fragment of the address (``#L3``) for one line and for several lines.
        plain: the query of the address that shows a rendered file, such as Markdown, as plain text.
    """

    place: re.Pattern[str]
    one: str
    several: str
    plain: str = ""


def _form(place: str, one: str, several: str, plain: str = "") -> _Form:
    return _Form(re.compile(rf"https?://[^/?#]+/[^?#]+/{place}/{_COMMIT}/[^?#]+"), one, several, plain)


# The first that fits: "/-/blob/" before "/blob/", "/src/commit/" before "/src/".
_FORMS: Sequence[_Form] = (
    _form("-/blob", "#L{0}", "#L{0}-{1}", "?plain=1"),  # GitLab
    _form("blob", "#L{0}", "#L{0}-L{1}", "?plain=1"),  # GitHub
    _form("src/commit", "#L{0}", "#L{0}-L{1}", "?display=source"),  # Gitea, Forgejo
    _form("src", "#lines-{0}", "#lines-{0}:{1}"),  # Bitbucket
)
# Files that are shown as they are meant to be read, where no line has a number.
_RENDERED = re.compile(
    r"\.(?:md|mdown|markdown|mkd|mdx|rst|adoc|asciidoc|org|textile|rdoc|mediawiki|wiki|pod|ipynb|svg)", re.IGNORECASE
)


# What RFC 3986 allows in a fragment.
_IN_FRAGMENT = "!$&'()*+,;=:@/?-._~%"


def passage_url(
    url: str | None, metadata: Metadata, *, line_range: tuple[int, int] | None = None, message_ids: Sequence[str] = ()
) -> str | None:
    """Return the address that opens a passage at its first message, lines or section; ``None`` if it has no address.

    If the address of the place is not known, the address of the whole document is returned.

    Args:
        metadata: of the chunk: ``permalink`` and ``thread_permalink`` are templates for the address of a message, in
            which ``{id}`` stands for its id and ``{digits}`` for the digits of the id; ``anchor`` names the section.
        line_range: first and last line, from 1; ``None`` if the passage has no lines.
        message_ids: of the passage, in order.
    """
    own = metadata.get("url")  # of a part that has one, such as an answer to a question
    url = own if isinstance(own, str) and is_web_address(own) else url
    if url is None or "#" in url:
        return url
    if message_ids:
        return _of_message(message_ids[0], metadata) or url
    form = next((form for form in _FORMS if form.place.fullmatch(url)), None)
    if form is not None:
        return url if line_range is None else _with_lines(url, form, *line_range)
    anchor = metadata.get(ANCHOR)
    return f"{url}#{quote(anchor, safe=_IN_FRAGMENT)}" if isinstance(anchor, str) and anchor else url


def _of_message(identifier: str, metadata: Metadata) -> str | None:
    thread = metadata.get("thread_id")
    is_reply = isinstance(thread, str) and thread != identifier and "thread_permalink" in metadata
    template = metadata.get("thread_permalink" if is_reply else "permalink")
    if not isinstance(template, str) or not is_web_address(template):
        return None
    values = {"{id}": identifier, "{digits}": re.sub(r"\D", "", identifier), "{thread_id}": str(thread)}
    for name, value in values.items():
        template = template.replace(name, quote(value, safe="."))
    return template


def _with_lines(url: str, form: _Form, first: int, last: int) -> str:
    plain = form.plain if _RENDERED.fullmatch(url, url.rfind(".")) else ""
    return url + plain + (form.one if first == last else form.several).format(first, last)
