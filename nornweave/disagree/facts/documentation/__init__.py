"""Extract facts from documentation, conversations and papers: from structure first, then from prose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from nornweave.core.types import Fact
from nornweave.disagree.facts.documentation.blocks import blocks_of
from nornweave.disagree.facts.documentation.page import Page, Subject, page_of
from nornweave.disagree.facts.documentation.reader import Reader
from nornweave.disagree.facts.documentation.surface import fragments_of
from nornweave.disagree.facts.passage import Passage

MAX_FACTS = 2_000
"""Of one passage."""


def documentation_facts(passage: Passage, *, subject: str = "", owner: str = "") -> Iterator[Fact]:
    """Yield what a passage of documentation, of a conversation or of a paper states about named things.

    Args:
        subject: the written name of what the whole passage documents, when it is a docstring or a comment.
        owner: what that belongs to (its class).

    Returns:
        At most ``MAX_FACTS``, in the order of the text as far as its structure goes; spans lie inside the passage.
    """
    yield from islice(_facts(passage, subject, owner), MAX_FACTS)


def _facts(passage: Passage, subject: str, owner: str) -> Iterator[Fact]:
    page = page_of(passage, subject)
    parts = fragments_of(passage.text, passage.path) if page.comment and not subject else []
    if not any(part.subject for part in parts):
        yield from _read_passage(page, subject, owner)
        return
    above = owner or passage.section or passage.title or ""
    for part in parts:
        text = passage.text[part.start : part.end]
        inner = replace(passage, text=text, start=passage.start + part.start)
        first = passage.line_of(part.start)
        for fact in _read_passage(page_of(inner, part.subject), part.subject, above):
            yield replace(fact, line=fact.line + first)


def _read_passage(page: Page, subject: str, owner: str) -> Iterator[Fact]:
    """Yield the facts of a page.

    Args:
        subject: what all of it documents; empty if it is no comment.
        owner: of the subject.
    """
    root = Subject(name=subject, form="field", owner=owner) if subject else None
    passage = page.passage
    suffix = passage.path.lower()
    is_rst = passage.format == "rst" or suffix.endswith((".rst", ".txt")) or page.comment or not passage.format
    markdown = (
        not page.comment
        and not root
        and (passage.format == "markdown" or suffix.endswith((".md", ".mdx", ".markdown")))
    )
    blocks = blocks_of(page.text, page.text if page.comment else passage.text, rst=is_rst, markdown_code=markdown)
    yield from Reader(page, root).read(blocks)
