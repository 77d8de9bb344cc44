"""One sentence of prose with its surroundings, and how a claim of it is put together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from nornweave.claims import phrases
from nornweave.claims.moods import mood_of
from nornweave.claims.passage import Passage
from nornweave.claims.sentences import Sentence
from nornweave.types import Claim, ClaimKind, Mood, Span

MAX_STATEMENT = 240
FEW_TOPICS = 4
"""A statement of a conversation with fewer topics takes more from what was said before."""

_LEFT_OUT = re.compile(
    r"\b(?:specify|provide|set|pass|give|choose)\s(?:an?|the|any)\s([\w -]{3,40}?)(?:,|\sfor\b|\sin\b|\sof\b)",
    re.IGNORECASE,
)
# ```--name <int>` - what it does``, ``:param name:``, ``name : int, optional``.
_DEFINED = re.compile(
    r"\W*`-{0,2}([A-Za-z][\w.-]{1,60})(?:[ =][<\[]?[\w|]{1,20}[>\]]?)?\s?`|:\w+ (?:\w+ )?([\w]{2,40}):"
    r"|([a-z]\w{1,40})\s?:\s(?:int|float|str|bool|number|string|boolean|integer|timedelta|duration)\b"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A sentence where it stands.

    Attributes:
        previous: the sentence before it, empty for the first.
    """

    passage: Passage
    sentence: Sentence
    previous: str

    @property
    def text(self) -> str:
        """The sentence's text."""
        return self.sentence.text

    @property
    def said(self) -> datetime | None:
        """When it was said, in conversations: what weekdays are counted from."""
        return self.passage.timestamp if self.passage.domain == "conversations" else None

    def headings(self) -> tuple[str, ...]:
        """Return what it stands under, the nearest first."""
        return phrases.headings_of(self.passage, self.sentence)

    def before(self) -> tuple[str, ...]:
        """Return what was said before, the last first: what a short answer speaks of."""
        lines = self.passage.context.splitlines()[-3:][::-1]
        return (self.previous, *(line.removeprefix("[context]").partition(": ")[2] for line in lines))

    def subjects(self, at: int) -> tuple[str, ...]:
        """Return the phrases that may name what a value at ``at`` belongs to, the best first."""
        low, _ = phrases.clause_around(self.text, at, at, ())
        found = [phrases.subject_of(self.text[low:]), phrases.subject_of(self.text)]
        left_out = _LEFT_OUT.search(self.text)
        if left_out:
            found.insert(0, left_out[1])
        defined = _DEFINED.match(self.sentence.head or self.text)
        if defined:
            found.append(defined[1] or defined[2] or defined[3])
        if found[0] and at < len(found[0]):
            found.insert(0, self.text[low + len(found[0]) :])  # "60 a minute is what a key gets"
        found.extend(self.antecedents(self.text[low:]))
        return tuple(dict.fromkeys(phrase for phrase in found if phrase))

    def antecedents(self, clause: str) -> tuple[str, ...]:
        """Return what a pronoun that opens a clause stands for: the previous sentence's subject, or the heading."""
        if not (phrases.points_back(clause) or phrases.points_back(self.text)):
            return ()
        return tuple(phrase for phrase in (phrases.subject_of(self.previous), *self.headings()[:1]) if phrase)

    def mood(self, *, clause: str = "", event: bool = False, day: bool = False) -> Mood:
        """Say how it is meant; the arguments are those of ``moods.mood_of``."""
        heading = self.sentence.heading
        return mood_of(self.text, self.passage, heading=heading, clause=clause, event=event, day=day)

    def claim(
        self,
        kind: ClaimKind,
        attribute: str,
        value: str,
        unit: str | None,
        *,
        entity: str,
        place: tuple[int, int],
        others: Sequence[tuple[int, int]] = (),
        mood: Mood,
    ) -> Claim:
        """Put a claim together.

        Args:
            place: of the value, in the sentence.
            others: places of the sentence's other values, whose clauses are theirs.
        """
        return Claim(
            kind=kind,
            entity=entity,
            attribute=attribute,
            value=value,
            unit=unit,
            span=Span(self.passage.start + self.sentence.start, self.passage.start + self.sentence.end),
            statement=self.text[:MAX_STATEMENT].rstrip(),
            topics=self._topics(entity, attribute, place, others),
            mood=mood,
        )

    def _topics(
        self, entity: str, attribute: str, place: tuple[int, int], others: Sequence[tuple[int, int]]
    ) -> tuple[str, ...]:
        """Collect topics from near to far: the clause, the subject, headings, the list's lead, the file."""
        low, high = phrases.clause_around(self.text, *place, others)
        clause = f"{self.text[low : place[0]]} {self.text[place[1] : high]}"
        whole = phrases.subject_of(self.text) if others else self.text
        file = phrases.stem_of_file(self.passage)
        found = phrases.topics((entity, clause, whole, *self.headings(), self.sentence.lead, file), attribute)
        if self.passage.domain == "conversations" and len(found) < FEW_TOPICS:
            return phrases.topics(self.before(), attribute, found)
        return found
