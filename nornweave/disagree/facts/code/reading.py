"""The state while one passage of code is read: text, places, constants, facts so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from nornweave.core.types import Attribute, Fact, Form, Qualifier
from nornweave.disagree.facts.code.constants import Constants
from nornweave.disagree.facts.code.scopes import Base, owner_of
from nornweave.disagree.facts.code.sites import ValueSite
from nornweave.disagree.facts.passage import Passage, fact_of
from nornweave.disagree.facts.values import Value

MAX_FACTS = 4_000
MAX_SPAN = 2_000
MAX_STRING = 120
"""Of a value: longer ones are messages and templates."""


@dataclass(slots=True)
class Reading:
    """What the rules share; they add facts to it."""

    passage: Passage
    language: str
    base: Base
    sites: list[ValueSite]
    constants: Constants
    deadline: float
    facts: dict[tuple[object, ...], Fact] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text of the passage."""
        return self.passage.text

    @property
    def is_over(self) -> bool:
        """Whether there are enough facts, or no time is left."""
        return len(self.facts) >= MAX_FACTS or time.thread_time() > self.deadline

    def value_text(self, site: ValueSite) -> str:
        """Return the value of a place as it is written; empty without one, or if it is too long for a value."""
        if site.value is None or site.value[1] - site.value[0] > MAX_SPAN:
            return ""
        return self.text[site.value[0] : site.value[1]].removeprefix("=>")  # a property of C#

    def before(self, site: ValueSite) -> str:
        """Return what stands before the name of a place: modifiers, annotations, its type."""
        return self.text[max(site.start, site.name_start - 300) : site.name_start]

    def add(
        self,
        site: ValueSite,
        value: Value | None,
        attribute: Attribute,
        form: Form = "definition",
        *,
        name: str = "",
        owner: str | None = None,
        qualifiers: tuple[Qualifier, ...] = (),
    ) -> None:
        """Keep a fact that a place states, unless its value is not known."""
        if value is None or len(self.facts) >= MAX_FACTS:
            return
        if value.kind == "string" and len(value.text) > MAX_STRING:
            return
        end = site.value[1] if site.value and site.value[1] - site.start <= MAX_SPAN else site.end
        start = site.name_start if 0 <= site.name_start < end and site.role != "call" else site.start
        fact = fact_of(
            self.passage,
            name=name or site.bare_name,
            value=value,
            attribute=attribute,
            side="code",
            form=form,
            start=start,
            end=max(start, min(end, start + MAX_SPAN)),
            owner=owner_of(site, self.base) if owner is None else owner,
            qualifiers=qualifiers,
        )
        if fact is not None:
            line = 0 if attribute == "status" else fact.line  # a function answers a status once
            self.facts.setdefault((fact.name, fact.owner, fact.attribute, fact.kind, fact.value, line), fact)
