"""The stages in their order, timed: answers → one ranked, deduplicated list with its conflicts (PIPELINE)."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import MappingProxyType
from typing import TypeVar

from nornweave.fusion.collect import collect
from nornweave.fusion.conflicts import resolve_conflicts
from nornweave.fusion.deduplicate import deduplicate
from nornweave.fusion.normalize import normalize
from nornweave.fusion.rank import rank
from nornweave.fusion.records import ConflictStrategy, Fused, FuseRequest
from nornweave.fusion_settings import FusionSettings
from nornweave.routing import query_type

T = TypeVar("T")


def fuse(request: FuseRequest, settings: FusionSettings) -> Fused:
    """Run the stages 1 to 5.

    Returns:
        Every item that was neither merged into another nor dropped, best first; all conflicts; what was merged.
    """
    clock = Stopwatch()
    collected = clock.time("collect", lambda: collect(request.responses, request.coverage_gaps))
    normalized = clock.time("normalize", lambda: normalize(collected, settings.normalization))
    deduped = clock.time("deduplicate", lambda: deduplicate(normalized, settings.dedup_similarity_threshold))
    resolved = clock.time(
        "conflicts",
        lambda: resolve_conflicts(
            deduped,
            request.strategy or ConflictStrategy(settings.conflict_strategy),
            penalty=settings.conflict_demotion_penalty,
            policy=settings.conflict_loser_policy,
            tie_window_hours=settings.recency_tie_window_hours,
            query_type=query_type(request.text),
            stretched=normalized.normalization == "minmax",
        ),
    )
    ranked = clock.time(
        "rank",
        lambda: rank(
            resolved,
            weights=settings.rank_weights(normalized.normalization),
            domain_signals=request.domain_signals,
            now=request.now,
        ),
    )
    return Fused(
        items=ranked.items,
        conflicts=resolved.conflicts,
        coverage_gaps=collected.coverage_gaps,
        merges=deduped.merges,
        normalization=normalized.normalization,
        statistics=MappingProxyType({"total_items": len(collected.items), "deduplicated_items": len(deduped.items)}),
        stage_latency_ms=clock.milliseconds,
    )


class Stopwatch:
    """Times steps by name."""

    def __init__(self) -> None:
        self._milliseconds: dict[str, float] = {}

    def time(self, step: str, work: Callable[[], T]) -> T:
        """Do ``work`` and note how long it took."""
        started = time.perf_counter()
        result = work()
        self._milliseconds[step] = round((time.perf_counter() - started) * 1000, 3)
        return result

    @property
    def milliseconds(self) -> MappingProxyType[str, float]:
        """Return the time of each step."""
        return MappingProxyType(self._milliseconds)
