"""Fusion's stages in their order, timed: answers of agents → one ranked, deduplicated list with its conflicts."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import MappingProxyType
from typing import TypeVar

from nornweave.ask.fuse.collect import collect
from nornweave.ask.fuse.conflict_resolution import resolve_conflicts
from nornweave.ask.fuse.deduplication.merge import deduplicate
from nornweave.ask.fuse.normalize import normalize
from nornweave.ask.fuse.rank import rank
from nornweave.ask.fuse.records import Fused, Recalled
from nornweave.ask.route.router import query_type
from nornweave.ask.search.question import ConflictStrategy, Question
from nornweave.config.fusion import FusionSettings
from nornweave.core.tracing import span
from nornweave.disagree.conflicts.origins import Origins

T = TypeVar("T")


class Stopwatch:
    """Times steps by name; it runs from its making on."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._milliseconds: dict[str, float] = {}

    def time(self, step: str, work: Callable[[], T]) -> T:
        """Do ``work`` and note how long it took."""
        started = time.perf_counter()
        with span(f"nornweave.{step}"):
            result = work()
        self._milliseconds[step] = round((time.perf_counter() - started) * 1000, 3)
        return result

    @property
    def milliseconds(self) -> MappingProxyType[str, float]:
        """Return the time of each step so far."""
        return MappingProxyType(dict(self._milliseconds))

    @property
    def total_ms(self) -> float:
        """Return the time since it was made."""
        return (time.perf_counter() - self._started) * 1000


def fuse(
    question: Question, recalled: Recalled, settings: FusionSettings, *, origins: Origins, clock: Stopwatch
) -> Fused:
    """Collect, normalise, deduplicate, resolve conflicts, rank.

    Args:
        question: its text, its strategy for conflicts and its moment count.
        recalled: what is fused.
        settings: of fusion.
        origins: who wrote the lines that contradict each other, as far as the ledger knows.
        clock: times each stage.

    Returns:
        Every item that was neither merged into another nor dropped, best first; all conflicts; what was merged.
    """
    collected = clock.time("collect", lambda: collect(recalled.responses))
    normalized = clock.time("normalize", lambda: normalize(collected, settings.normalization))
    deduped = clock.time("deduplicate", lambda: deduplicate(normalized, settings.dedup_similarity_threshold))
    resolved = clock.time(
        "conflicts",
        lambda: resolve_conflicts(
            deduped,
            question.strategy or ConflictStrategy(settings.conflict_strategy),
            penalty=settings.conflict_demotion_penalty,
            policy=settings.conflict_loser_policy,
            tie_window_hours=settings.recency_tie_window_hours,
            query_type=query_type(question.text),
            stretched=normalized.normalization == "minmax",
            origins=origins,
        ),
    )
    ranked = clock.time(
        "rank",
        lambda: rank(
            resolved,
            weights=settings.rank_weights(normalized.normalization),
            domain_signals=recalled.domain_signals,
            now=question.now,
        ),
    )
    return Fused(
        items=ranked.items,
        conflicts=resolved.conflicts,
        merges=deduped.merges,
        normalization=normalized.normalization,
        total_items=len(collected.items),
        deduplicated_items=len(deduped.items),
    )
