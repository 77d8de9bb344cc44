"""Read the blocks of a document by its format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from nornweave.core.text.inline_markup import front_matter
from nornweave.core.types import Span
from nornweave.read.blocks.asciidoc import read_asciidoc
from nornweave.read.blocks.block import Blocks, blanked, paragraphs
from nornweave.read.blocks.html import hidden_spans
from nornweave.read.blocks.man import read_man, read_pod
from nornweave.read.blocks.markdown import read_markdown
from nornweave.read.blocks.org import read_org
from nornweave.read.blocks.rst import read_rst
from nornweave.read.blocks.unseen import UnseenParts, internal_fields

LINED: Mapping[str, Callable[[str], Blocks]] = MappingProxyType(
    {
        "asciidoc": read_asciidoc,
        "man": read_man,
        "markdown": read_markdown,
        "org": read_org,
        "pod": read_pod,
        "rst": read_rst,
    }
)
"""Formats with lines, whose blocks stand in the text itself; HTML is read as text first."""

FORMATS = frozenset({*LINED, "html"})
"""Formats of documents that have blocks."""

CONVERTED = frozenset({"docx", "pptx", "xlsx", "epub", "ipynb", "eml", "mbox"})
"""Formats whose text is Markdown that their parser wrote; their sections name places (``cell 12``)."""


def read_blocks(text: str, format: str) -> Blocks:  # noqa: A002 - the word of ``Document.format``
    """Read the blocks of a text that has lines. If the format is unknown, read its paragraphs."""
    return LINED.get(format, paragraphs)(text)


def without_template(html: str) -> str:
    """Return a page with blanks in place of its front matter and of the template statements below it.

    The length does not change. A page without front matter is returned as it is.
    """
    front = front_matter(html) if html.startswith("---") else None
    if not front or not front.end:
        return html
    return blanked(html, [Span(0, front.end), *UnseenParts(html).within(Span(front.end, len(html)))])


def shown_text(text: str, format: str) -> str:  # noqa: A002
    """Return a text of the same length and with the same lines, in which blanks replace hidden text.

    Front matter is kept, because it states properties of the document even if no page shows it. Only its fields that
    are called internal are replaced.
    """
    format = "markdown" if format in CONVERTED else format  # noqa: A001
    if format == "html":
        page = without_template(text)
        return blanked(blanked(page, hidden_spans(page)), UnseenParts(page).within(Span(0, len(page))))
    if format not in LINED:
        return text
    front = front_matter(text) if format == "markdown" else None
    head = blanked(text[: front.end], internal_fields(text, front)) if front else ""
    return head + LINED[format](text).text[len(head) :]
