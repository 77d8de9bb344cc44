"""A passage as a comparison of sentences sees it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.assertions.reading import (
    SaidSentence,
    remembered_sentences,
    stems,
)
from nornweave.disagree.conflicts.records import PLACE_WORDS
from nornweave.disagree.facts.names import singular, words_of

_CHANGELOG = lazy_pattern(r"(?:change-?_?logs?|changes|history|news|release[-_ ]?notes?)(?:[./]|$)", re.IGNORECASE)
_CONFIGURATION = (".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".properties", ".env", ".sh")
_RELEASE = lazy_pattern(
    r"^\W*(?:[\w-]+ )?(?:version |release )?v?\d+(?:\.(?:\d+|x))+\W*(?:\d{4}-\d\d-\d\d|unreleased)?\W*$"
    r"|(?:\d\.\d|\b(?:v|version |release )\d).*\b(?:19|20)\d\d-\d\d-\d\d|^\W*(?:19|20)\d\d-\d\d-\d\d\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class AssertingPassage:
    """A passage whose sentences are compared with those of other domains.

    Attributes:
        place: identifies the passage by its number in an answer, or by its chunk in a corpus.
        start: the offset in the document at which ``text`` begins.
        line: the number of the line with this offset, from 0; ``None`` if it is unknown.
        updated_at: when a message or a paper was written; for others, and if that is unknown, ``saved_at``.
        saved_at: when its document last changed.
    """

    text: str
    domain: str
    source_id: str
    path: str
    place: str
    start: int = 0
    line: int | None = None
    section: str | None = None
    title: str | None = None
    updated_at: datetime | None = None
    saved_at: datetime | None = None
    revision: str | None = None

    @cached_property
    def near(self) -> frozenset[str]:
        """The stems of the passage's text, headings and file name, which its sentences need not repeat."""
        return stems(f"{self.text} {self.title or ''} {self.section or ''}") | self.topic

    @cached_property
    def heading(self) -> frozenset[str]:
        """The stems of the passage's symbol or last heading."""
        return stems_of_name(self.title or (self.section or "").rpartition(">")[2])

    @cached_property
    def topic(self) -> frozenset[str]:
        """The stems of the passage's heading and of its file's name."""
        return self.heading | stems_of_name(self.path.rpartition("/")[2].partition(".")[0])

    @cached_property
    def topic_of_settings(self) -> frozenset[str]:
        """The stems of the passage's heading and path. The path shows to what a configuration file belongs."""
        return self.topic | stems_of_name(self.path.replace("/", " "))

    @property
    def is_history(self) -> bool:
        """Whether the passage is in a changelog or in the section of a release. A chat titled with a date is not."""
        title = (self.section or self.title or "").rpartition(">")[2]
        return self.domain != "conversations" and bool(_CHANGELOG.search(self.path) or _RELEASE.search(title))

    @property
    def sets_values(self) -> bool:
        """Whether the passage may have settings, because it is of code or configuration and not of a style sheet."""
        return self.domain == "code" and not self.path.endswith((".css", ".scss", ".sass", ".less"))

    @property
    def is_configuration(self) -> bool:
        """Whether the passage is of a configuration file, in which values need no quotation marks."""
        name = self.path.rpartition("/")[2]
        return name.startswith(".env") or name.endswith(_CONFIGURATION)

    @property
    def sentences(self) -> Sequence[SaidSentence]:
        """The sentences of the passage. In a program these are the sentences of comments and docstrings."""
        return remembered_sentences(self.text, code=self.domain == "code")


def stems_of_name(name: str) -> frozenset[str]:
    """Return the stems of the words of a symbol, a heading or a file's name, without words such as *index*."""
    return stems(" ".join(each for each in map(singular, words_of(name)) if each not in PLACE_WORDS))
