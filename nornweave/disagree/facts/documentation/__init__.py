"""Extract facts from documentation, conversations and papers: from structure first, then from prose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact, Side, Span
from nornweave.disagree.facts.documentation.reader import Reader, Subject
from nornweave.disagree.facts.documentation.surface import surface_of
from nornweave.disagree.facts.documentation.tokens import MAX_LINE
from nornweave.disagree.facts.documentation.walk import flag_of
from nornweave.disagree.facts.passage import Passage
from nornweave.read.blocks.block import Block
from nornweave.read.blocks.reader import read_blocks, shown_text
from nornweave.read.chunking.languages import language_of

MAX_FACTS = 2_000
"""Of one passage."""
_TAG_NAME = lazy_pattern(r"[\w.-]{2,}")
_SIDES: dict[str, Side] = {"conversations": "conversation", "research": "research"}
_LONG = lazy_pattern(rf"^([^\n]{{{MAX_LINE}}})([^\n]+)", re.MULTILINE)


def documentation_facts(passage: Passage, *, subject: str = "", owner: str = "") -> Iterator[Fact]:
    """Yield the facts about named things in a passage of documentation, a conversation or a paper.

    Lines are read only up to ``MAX_LINE`` characters.

    Args:
        subject: the written name of the definition that a docstring or comment documents.
        owner: the owner of this definition (its class).

    Returns:
        At most ``MAX_FACTS`` facts, in the order of the text's blocks; their spans lie inside the passage.
    """
    if passage.format in {"man", "pod"}:
        yield from islice(_of_manual(passage), MAX_FACTS)
        return
    comment = bool(subject or passage.language or language_of(passage.path))
    shown = passage.text if comment else shown_text(passage.text, passage.format)
    text = _LONG.sub(lambda match: match[1] + " " * len(match[2]), shown)
    root = Subject(name=subject, form="field", owner=owner) if subject else None
    side = _SIDES.get(passage.domain, "documentation")
    reader = Reader(passage, surface_of(text, comment=comment), side, comment, root)
    yield from islice(reader.read(), MAX_FACTS)


def _of_manual(passage: Passage) -> Iterator[Fact]:
    """Yield the facts of a manual page. An item's text is about the option or key in its tag; the rest is prose."""
    read = read_blocks(passage.text, passage.format)
    page = replace(passage, text=read.text, format="")
    rest, at = [], 0
    for name, span, section in _items(read.blocks):
        said = read.text[span.start : span.end]
        part = replace(page, text=said.replace("\n", " "), start=passage.start + span.start)
        for fact in documentation_facts(part, subject=name, owner=section):
            first, last = fact.span.start - passage.start, fact.span.end - passage.start
            yield replace(fact, line=page.line_of(first), statement=page.lines_between(first, last))
        if span.start >= at:
            rest += [read.text[at : span.start], re.sub(r"[^\n]", " ", said)]
            at = span.end
    yield from documentation_facts(replace(page, text="".join((*rest, read.text[at:]))))


def _items(blocks: Iterable[Block], section: str = "") -> Iterator[tuple[str, Span, str]]:
    """Yield each item of a manual page: the name in its tag, the span of its text, and its section or outer item."""
    for block in blocks:
        section = block.info if block.kind == "heading" else section
        tags = block.info.split(", ") if block.kind == "term" else []
        flags = [flag.name for tag in tags if (flag := flag_of(tag))]
        name = max(flags, key=len) if flags else named[0] if tags and (named := _TAG_NAME.match(tags[0])) else ""
        own = [part for part in block.parts if part.kind not in {"term", "heading"}]
        if name and own:
            yield name, Span(own[0].span.start, own[-1].span.end), section
        yield from _items((part for part in block.parts if part.kind == "term"), name or section)
