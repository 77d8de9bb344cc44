"""Extract facts from documentation, conversations and papers: from structure first, then from prose."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from nornweave.core.types import Fact
from nornweave.disagree.facts.documentation.blocks import blocks_of
from nornweave.disagree.facts.documentation.page import Subject, page_of
from nornweave.disagree.facts.documentation.reader import Reader
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
    page = page_of(passage, subject)
    root = Subject(name=subject, form="field", owner=owner) if subject else None
    blocks = blocks_of(page.text, page.text if page.comment else passage.text)
    yield from islice(Reader(page, root).read(blocks), MAX_FACTS)
