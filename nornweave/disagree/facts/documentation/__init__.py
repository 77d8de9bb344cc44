"""Extract facts from documentation, conversations and papers: from structure first, then from prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact, Side
from nornweave.disagree.facts.documentation.reader import Reader, Subject
from nornweave.disagree.facts.documentation.surface import surface_of
from nornweave.disagree.facts.documentation.tokens import MAX_LINE
from nornweave.disagree.facts.passage import Passage
from nornweave.read.blocks.reader import shown_text
from nornweave.read.chunking.languages import language_of

MAX_FACTS = 2_000
"""Of one passage."""
_SIDES: dict[str, Side] = {"conversations": "conversation", "research": "research"}
_LONG = lazy_pattern(rf"^([^\n]{{{MAX_LINE}}})([^\n]+)", re.MULTILINE)


def documentation_facts(passage: Passage, *, subject: str = "", owner: str = "") -> Iterator[Fact]:
    """Yield what a passage of documentation, of a conversation or of a paper states about named things.

    Lines of more than ``MAX_LINE`` characters are not read behind that.

    Args:
        subject: the written name of what the whole passage documents, when it is a docstring or a comment.
        owner: what that belongs to (its class).

    Returns:
        At most ``MAX_FACTS``, in the order of the text as far as its structure goes; spans lie inside the passage.
    """
    comment = bool(subject or passage.language or language_of(passage.path))
    shown = passage.text if comment else shown_text(passage.text, passage.format)
    text = _LONG.sub(lambda match: match[1] + " " * len(match[2]), shown)
    root = Subject(name=subject, form="field", owner=owner) if subject else None
    side = _SIDES.get(passage.domain, "documentation")
    reader = Reader(passage, surface_of(text, comment=comment), side, comment, root)
    yield from islice(reader.read(), MAX_FACTS)
