"""A question: the one record that goes from the edge to the last stage.

The API and the command line make it, each stage reads what it needs, and nothing along the way fills anything in. What
an edge alone can know is handed in with it: the ids, the clock and the deadline.
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
    """When an answer has to be there.

    Attributes:
        started: when the request came in, of ``time.monotonic()``; waiting for anything counts from then.
    """

    timeout_ms: int
    started: float = field(default_factory=time.monotonic)

    @property
    def at(self) -> float:
        """Return the moment, of ``time.monotonic()``."""
        return self.started + self.timeout_ms / 1000

    @property
    def left_s(self) -> float:
        """Return the seconds that are left, 0 when none are."""
        return max(0.0, self.at - time.monotonic())

    @property
    def left_ms(self) -> int:
        """Return the whole milliseconds that are left, 0 when none are."""
        return int(self.left_s * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, of all domains or of one.

    Attributes:
        text: 1 to 32,000 characters, not blank; ``focused`` makes 4,096 of a longer one.
        now: what recency is counted from, in every domain and between them.
        as_of: the moment, or the generation, that it is answered from; ``None``: what is published now.
        viewer: who asks: what they may not see is not searched.
        query_id: names the answer, so that it can be judged; empty for questions whose answers nobody sees.
        trace_id: of the request, in the log as well (W3C Trace Context); empty where there is no request.
        domains: which to ask; ``None`` leaves it to routing.
        top_k: items wanted, 1 to 100; a fusion of given answers may keep more.
        filters: by domain, declared filter key → value; only chunks that pass all of them are searched.
        expand: add variants of the query: by rule, always, never.
        rerank: use the cross-encoder: as the plan says, always, never.
        deadline: the answer is there by then, with what has arrived; ``None`` waits for everything.
        explain: give every item its ``Explanation``, and the answer its merges.
        trace: let the responses say what every stage found, for evaluations.
        views: by domain what is searched instead of its generation, for evaluations.
        strategy: how conflicts are resolved; ``None`` takes the configured one.
        max_tokens, min_score, diversity: the context budget (``answer/context_budget.py``).
        synthesize: whether a model writes an answer, in what is left of the time.
        asked: what was asked, where ``text`` is what is searched of it.
        shortened: what of it is searched, in words, where that is not all.
        left_out: words that it leaves out (``-redis``), which ``text`` does not have.
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
        """Return the seconds that are left, ``None`` without a deadline."""
        return self.deadline.left_s if self.deadline else None

    def focused(self) -> Question:
        """Return the question with the text that is searched: a pasted one is put in order, a long one shortened."""
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
