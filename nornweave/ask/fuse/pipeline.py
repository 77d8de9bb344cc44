"""Fusion's stages in their order, timed: answers of agents → one ranked, deduplicated list with its conflicts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType

from nornweave.ask.fuse.collect import collect, normalize, scale_of
from nornweave.ask.fuse.conflict_resolution import ConflictRules, resolve_conflicts
from nornweave.ask.fuse.deduplication.merge import deduplicate
from nornweave.ask.fuse.order import order
from nornweave.ask.fuse.rank import query_type, rank
from nornweave.ask.fuse.records import Fused, Recalled, Scale
from nornweave.ask.search.question import ConflictStrategy, Question
from nornweave.config.workspace import FusionSettings
from nornweave.core.tracing import span
from nornweave.disagree.assertions.alike import SentenceEncoder
from nornweave.disagree.conflicts.records import LedgerNotes


class Stopwatch:
    """Measures steps by name. It starts when it is made."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._milliseconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure the time of a block. The time of a block that raises an error is not recorded."""
        started = time.perf_counter()
        with span(f"nornweave.{name}"):
            yield
        self._milliseconds[name] = round((time.perf_counter() - started) * 1000, 3)

    @property
    def milliseconds(self) -> MappingProxyType[str, float]:
        """Return the name of each finished step → its time in milliseconds."""
        return MappingProxyType(dict(self._milliseconds))

    @property
    def total_ms(self) -> float:
        """Return the time since the stopwatch was made."""
        return (time.perf_counter() - self._started) * 1000


def fuse(
    question: Question,
    recalled: Recalled,
    settings: FusionSettings,
    *,
    notes: LedgerNotes,
    clock: Stopwatch,
    encode: SentenceEncoder | None = None,
) -> Fused:
    """Collect, normalise, deduplicate, resolve conflicts, rank, order the first places if several domains answered.

    Args:
        encode: encodes sentences, to find conflicts between sentences in other words.

    Returns:
        Every item that was neither merged into another nor dropped, best first; all conflicts; what was merged.
    """
    with clock.step("collect"):
        collected = collect(recalled.responses)
    with clock.step("normalize"):
        scale = scale_of(collected, settings.normalization)
        normalized = normalize(collected, scale)
    with clock.step("deduplicate"):
        deduped = deduplicate(normalized, settings.dedup_similarity_threshold, question.text)
    with clock.step("conflicts"):
        resolved = resolve_conflicts(deduped.items, _rules(question, settings, scale), notes, encode)
    with clock.step("rank"):
        ranked = rank(
            resolved.items,
            resolved.conflicts,
            weights=settings.rank_weights(scale),
            domain_signals=recalled.domain_signals,
            now=question.now,
        )
        if scale == "calibrated" and len({each.domain_id for each in recalled.responses if each.items}) > 1:
            ranked = order(ranked, question.text)
    return Fused(
        items=ranked,
        conflicts=resolved.conflicts,
        merges=deduped.merges,
        normalization=scale,
        total_items=len(collected),
        deduplicated_items=len(deduped.items),
    )


def _rules(question: Question, settings: FusionSettings, scale: Scale) -> ConflictRules:
    return ConflictRules(
        strategy=question.strategy or ConflictStrategy(settings.conflict_strategy),
        penalty=settings.conflict_demotion_penalty,
        policy=settings.conflict_loser_policy,
        tie_window_hours=settings.recency_tie_window_hours,
        query_type=query_type(question.text),
        stretched=scale == "minmax",
        question=question.text,
        is_chosen=question.strategy is not None,
    )
