"""A question: the one record that is passed from the edge to the last stage.

The API and the command line make it. Each stage reads the fields that it needs, and no stage fills fields in. Values
that only an edge knows are part of it: the ids, the clock and the deadline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from nornweave.ask.search.pasted import searched_text
from nornweave.ask.search.records import Filters, Switch
from nornweave.core.access import Viewer
from nornweave.core.text.negation import left_out
from nornweave.core.types import Domain
from nornweave.index.generations.moves import AsOf

if TYPE_CHECKING:  # a process that only supervises knows questions, and needs no numpy
    from nornweave.index.index import Index
    from nornweave.models.encoders.port import Encoder

NO_FILTERS: Mapping[Domain, Filters] = MappingProxyType({})
View: TypeAlias = "Callable[[Index, Encoder | None], Index]"
"""Makes what is searched instead of a generation, with its encoder where that can be loaded."""
NO_VIEWS: Mapping[Domain, View] = MappingProxyType({})


class ConflictStrategy(StrEnum):
    """How a conflict is resolved (``fuse/conflict_resolution.py``)."""

    RECENCY = "RECENCY"
    SOURCE_AUTHORITY = "SOURCE_AUTHORITY"
    CONFIDENCE = "CONFIDENCE"
    FLAG = "FLAG"
    RECENCY_THEN_FLAG = "RECENCY_THEN_FLAG"


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time by which an answer is due.

    Attributes:
        started: when the request arrived, by ``time.monotonic()``; all waiting counts from then.
    """

    timeout_ms: int
    started: float = field(default_factory=time.monotonic)

    @property
    def at(self) -> float:
        """Return the deadline as a value of ``time.monotonic()``."""
        return self.started + self.timeout_ms / 1000

    @property
    def left_s(self) -> float:
        """Return the remaining seconds, 0 if none are left."""
        return max(0.0, self.at - time.monotonic())

    @property
    def left_ms(self) -> int:
        """Return the remaining whole milliseconds, 0 if none are left."""
        return int(self.left_s * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to all domains or to one.

    Attributes:
        text: 1 to 32,000 characters, not blank; ``focused`` shortens it to 4,096.
        now: the present, from which recency is counted in all domains.
        as_of: the moment or the generation to answer from; ``None`` is the current one.
        viewer: the asker; documents that they may not see are not searched.
        query_id: the answer's id, with which it can be judged; empty for questions whose answers nobody sees.
        trace_id: of the request, also in the log (W3C Trace Context); empty without a request.
        domains: the domains to ask; ``None`` lets routing choose.
        top_k: the number of items, 1 to 100; a fusion of given answers may keep more.
        filters: by domain, declared filter key → value; only chunks that pass all of them are searched.
        expand: whether to add variants of the query; ``auto`` decides by rule.
        rerank: whether to use the cross-encoder; ``auto`` does what the plan says.
        deadline: when the answer is due, from what has arrived by then; ``None`` waits for everything.
        explain: give every item its ``Explanation``, and the answer its merges.
        trace: add the findings of every stage to the responses, for evaluations.
        views: by domain, an index to search instead of its generation, for evaluations.
        strategy: how conflicts are resolved; ``None`` takes the configured one.
        max_tokens, min_score, diversity: the context budget (``answer/context_budget.py``).
        synthesize: whether a model writes an answer, in the remaining time.
        asked: the original question, if ``text`` is only a part of it.
        shortened: a note on the searched part; empty if the whole text is searched.
        left_out: excluded words (``-redis``), which ``text`` does not contain.
    """

    text: str
    now: datetime
    viewer: Viewer
    as_of: AsOf | None = None
    query_id: str = ""
    trace_id: str = ""
    domains: tuple[Domain, ...] | None = None
    top_k: int = 10
    filters: Mapping[Domain, Filters] = field(default_factory=lambda: NO_FILTERS)
    expand: Switch = "auto"
    rerank: Switch = "auto"
    deadline: Deadline | None = None
    explain: bool = False
    trace: bool = False
    views: Mapping[Domain, View] = field(default_factory=lambda: NO_VIEWS)
    strategy: ConflictStrategy | None = None
    max_tokens: int | None = None
    min_score: float | None = None
    diversity: float | None = None
    synthesize: bool = False
    asked: str = ""
    shortened: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def left_s(self) -> float | None:
        """Return the remaining seconds, ``None`` without a deadline."""
        return self.deadline.left_s if self.deadline else None

    def focused(self) -> Question:
        """Return the question with the text to search: pasted text is rearranged, long text shortened."""
        text, shortened = searched_text(self.text)
        text, words = left_out(text)
        if text == self.text:
            return self
        return replace(
            self,
            text=text,
            asked=self.asked or self.text,
            shortened=shortened or self.shortened,
            left_out=words or self.left_out,
        )
