"""The input of fact extraction: a stretch of text with its place."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.text.spans import line_starts
from nornweave.core.types import Attribute, Fact, Form, Qualifier, Side, Span
from nornweave.disagree.facts.names import Name, read_name, words_of
from nornweave.disagree.facts.values import Value, measured_in

MAX_STATEMENT = 240
_KEY = lazy_pattern(r"[A-Za-z]\w*(?:\.[A-Za-z][\w-]*)*\.(?P<last>[A-Za-z][\w-]*)")
"""A string that is the full name of something."""
SECRET = lazy_pattern(
    r"passw(?:or)?d|secret|token|private_?key|api[_-]?key|access_?key|credential|passphrase|salt"
    r"|require_?pass|master_?auth|authorization\W+\w",
    re.IGNORECASE,
)
"""Names of values that are never kept."""


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A document, a chunk of one, or an item of an agent that sends no facts.

    Attributes:
        text: the original text, which may be cut anywhere.
        start: offset of the text in its document, from which spans are counted.
        domain: ``code``, ``documentation``, ``conversations``, ``research`` or another agent's domain.
        language: the language of code (``python``), as ``chunking/languages.py`` names it; ``None`` for other texts.
        format: the format of the document, such as ``markdown`` or ``slack``; empty if it is unknown.
        path: the path of the document in its source.
        title: the symbol or heading that names the passage.
        section: the heading path, ``A > B > C``.
        context: text from before the passage (class signature, heading path, earlier messages).
        timestamp: when it was written or last changed.
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

    @cached_property
    def _line_starts(self) -> list[int]:
        return line_starts(self.text)

    def line_of(self, offset: int) -> int:
        """Return the line, from 0, of a character of the text."""
        return bisect_right(self._line_starts, offset) - 1

    def lines_between(self, start: int, end: int) -> str:
        """Return the whole lines around a range, with collapsed blank space, cut for readers."""
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", end)
        stretch = self.text[first : last if last >= 0 else len(self.text)]
        if len(stretch) > 4 * MAX_STATEMENT:  # a minified line
            stretch = self.text[max(0, start - 40) : start + MAX_STATEMENT]
        return cut_at_word(" ".join(stretch.split()))


def cut_at_word(text: str) -> str:
    """Cut a statement to ``MAX_STATEMENT`` characters after a word, with a mark."""
    if len(text) <= MAX_STATEMENT:
        return text
    cut = text[: MAX_STATEMENT - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}…"


def _is_refused(value: Value, name: str, written: Name, side: Side) -> bool:
    """Tell whether a value is unknown, a secret, or only another spelling of the name, as in ``LEVEL = "level"``."""
    if not value.is_literal or (value.kind in {"string", "list"} and SECRET.search(name)):
        return True
    return side == "code" and says_name(value, written)


def says_name(value: Value, name: Name) -> bool:
    """Tell whether a string only repeats the name of the thing: ``limit = get("server", "limit")``."""
    words, own = words_of(value.text), tuple(name.name.split())
    # limit = get("server", "row_limit"); ROW_LIMIT = "server.rowLimit"; but not PARSER = "lamp.QuickParser"
    key = _KEY.fullmatch(value.text)
    is_key = key is not None and (key["last"][0].islower() or words_of(key["last"]) == own)
    is_looked_up = (value.is_fallback or is_key) and words[-len(own) :] == own
    return value.kind == "string" and "{" not in value.text and (is_looked_up or words == own[-max(1, len(words)) :])


def fact_of(
    passage: Passage, *, name: str, value: Value, attribute: Attribute, side: Side, form: Form, start: int, end: int,
    owner: str = "", unit: str | None = None, qualifiers: tuple[Qualifier, ...] = (), negated: bool = False,
    statement: str | None = None,
) -> Fact | None:  # fmt: skip
    """Return a fact from the parts that an extractor read.

    Args:
        name: the name as it is written: ``--request-timeout``, ``server.requestTimeout``, ``DEFAULT_TIMEOUT_MS``.
        value: the value that was read. A plain number gets the unit ``unit``, or else the unit of the name.
        start: the offset of the statement in ``passage.text``. ``end`` is the offset after it.
        owner: the owner as it is written, outermost first (``HttpServer``, ``Configuration > Database``).
        unit: a word of ``units.UNITS`` in the sentence (``milliseconds``); ``None`` if there is no such word.
        statement: the line or sentence; ``None`` for the lines from ``start`` to ``end``.

    Returns:
        The fact; ``None`` if the name is not valid, the value is not known, or the value may be a secret, which no
        report may show.
    """
    written = read_name(name)
    if written is None or _is_refused(value, name, written, side):
        return None
    if written.name == "default":  # ``default: 30`` says it of what stands above
        return None
    if attribute == "value" and written.attribute:
        attribute = written.attribute
    if attribute in {"default", "value", "setting"}:
        value = measured_in(value, unit or written.unit)
    return Fact(
        name=written.name,
        owner=" ".join(dict.fromkeys((*words_of(owner), *written.owner.split()))),
        attribute=attribute,
        kind=value.kind,
        value=value.text,
        unit=value.unit,
        side=side,
        form=form,
        qualifiers=tuple(sorted(set(qualifiers))),
        negated=negated,
        span=Span(passage.start + start, passage.start + end),
        line=passage.line_of(start),
        statement=cut_at_word(" ".join((statement or passage.lines_between(start, end)).split())),
    )


def fact_from(sent: Mapping[str, Any]) -> Fact:
    """Return a fact from the sandbox's JSON."""
    return Fact(**{**sent, "span": Span(**sent["span"]), "qualifiers": tuple(sent["qualifiers"])})
