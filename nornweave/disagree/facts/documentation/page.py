"""The state while a passage is read: its words, its speaker, and the topic of each stretch."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Fact, Form, Side
from nornweave.disagree.facts.documentation.qualifiers import qualifiers_of
from nornweave.disagree.facts.documentation.surface import is_comment, surface_of
from nornweave.disagree.facts.passage import Passage, fact_of
from nornweave.disagree.facts.values import Value

MAX_LINE = 2_000
_SIDES: dict[str, Side] = {"conversations": "conversation", "research": "research"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a stretch is about.

    Attributes:
        name: as it is written.
        form: of what is said about it: ``heading``, ``list``, ``field``, ``table``, ``topic``.
        owner: what it belongs to.
    """

    name: str
    form: Form
    owner: str = ""

    @property
    def is_weak(self) -> bool:
        """Tell whether the name is only the words of a heading."""
        return self.form == "topic"

    @property
    def path(self) -> str:
        """Return the owner of what belongs to it."""
        return f"{self.owner} > {self.name}" if self.owner else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A passage and its words.

    Attributes:
        text: the surface, of the same length as the passage's text.
        side: who speaks.
        talk: people in a thread.
    """

    passage: Passage
    text: str
    side: Side
    comment: bool = False

    @property
    def talk(self) -> bool:
        """Tell whether people speak in a thread."""
        return self.side == "conversation"

    def fact(
        self,
        subject: Subject,
        attribute: Attribute,
        value: Value,
        start: int,
        end: int,
        *,
        sentence: tuple[int, int] | None = None,
        negated: bool = False,
    ) -> Fact | None:
        """Make a fact of what was read; ``None`` if the name is none.

        Args:
            sentence: where the qualifiers are looked for; nowhere without one.
        """
        if sum(character.isalpha() for character in subject.name) < 2:
            return None
        qualifiers = qualifiers_of(self.text, sentence, start, end, talk=self.talk) if sentence else ()
        return fact_of(
            self.passage, name=subject.name, value=value, attribute=attribute, side=self.side, form=subject.form,
            start=start, end=end, owner=subject.owner, qualifiers=qualifiers, negated=negated,
        )  # fmt: skip


def page_of(passage: Passage, subject: str) -> Page:
    """Take the markup out of a passage; lines of more than ``MAX_LINE`` characters are blank behind that."""
    comment = is_comment(passage, subject)
    text = passage.text
    if len(text) > MAX_LINE and _LONG.search(text):
        text = _LONG.sub(lambda match: match[1] + " " * len(match[2]), text)
    side = _SIDES.get(passage.domain, "documentation")
    text = surface_of(text, comment=comment)
    return Page(passage=passage, text=text, side=side, comment=comment)


_LONG = lazy_pattern(rf"^([^\n]{{{MAX_LINE}}})([^\n]+)", re.MULTILINE)
