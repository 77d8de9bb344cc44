"""Extract facts from documentation, conversations and papers: from structure first, then from prose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from nornweave.core.types import Fact
from nornweave.disagree.facts.documentation.fragments import fragments_of
from nornweave.disagree.facts.documentation.page import page_of
from nornweave.disagree.facts.documentation.passages import read_passage
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
        yield from read_passage(page, subject, owner)
        return
    above = owner or passage.section or passage.title or ""
    for part in parts:
        text = passage.text[part.start : part.end]
        inner = replace(passage, text=text, start=passage.start + part.start)
        first = passage.line_of(part.start)
        for fact in read_passage(page_of(inner, part.subject), part.subject, above):
            yield replace(fact, line=fact.line + first)
