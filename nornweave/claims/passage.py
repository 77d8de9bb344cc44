"""What claims are read from: a stretch of text and what is known of where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A chunk's text, or an item's of an agent that says no claims of its own.

    Attributes:
        text: as it stands; may be cut anywhere.
        start: offset of the text in its document: what spans are counted from.
        domain: ``code``, ``documentation``, ``conversations``, ``research`` or another agent's domain.
        language: of code, a key of ``chunking/languages.py`` (``python``), or ``None``.
        format: ``markdown``, ``rst``, ``html``, ``yaml``, ``slack``, … or the empty string.
        path: of the document in its source.
        title: the symbol or heading that names it.
        section: the heading path, ``A > B > C``.
        context: what precedes it elsewhere (class signature, heading path, messages before it).
        timestamp: when it was said or changed last: what "Monday" and "yesterday" are counted from.
    """

    text: str
    start: int = 0
    domain: str = "documentation"
    language: str | None = None
    format: str = ""
    path: str = ""
    title: str | None = None
    section: str | None = None
    context: str = ""
    timestamp: datetime | None = None
