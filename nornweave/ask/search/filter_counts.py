"""Counts of the frequent values of a domain's filters, and notes on metadata that could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nornweave.ask.search.filters import has_few_values
from nornweave.config import FilterSettings
from nornweave.core.types import JsonValue
from nornweave.index.index import Index
from nornweave.index.searching.counting import UnreadValues, Value, ValueCounts
from nornweave.index.searching.visibility import MOST_VISIBILITIES

# Of a filter, as many frequent values as a reader looks through; on the page, which shows all filters, fewer.
FREQUENT_VALUES, FACET_VALUES = 20, 8
UNREAD_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class FilterCounts:
    """The counts of one filter's values."""

    values: ValueCounts
    unread: UnreadValues


class FilterCountsMemo:
    """Counts of a domain's filters, cached for each visible part of a generation."""

    def __init__(self) -> None:
        self._generation = ""
        self._by_part: dict[bytes, Mapping[str, FilterCounts]] = {}

    def of(self, generation: Index, filters: Sequence[FilterSettings]) -> Mapping[str, FilterCounts]:
        """Return filter → the counts of its values in a generation."""
        by_part = self._by_part
        if self._generation != generation.meta["generation"]:
            by_part = self._by_part = {}
            self._generation = generation.meta["generation"]
        if generation.part not in by_part:
            if len(by_part) >= MOST_VISIBILITIES:
                by_part.clear()
            by_part[generation.part] = count_filters(generation, filters)
        return by_part[generation.part]


def count_filters(generation: Index, filters: Sequence[FilterSettings]) -> dict[str, FilterCounts]:
    """Count the values of every countable filter, by key.

    Raises:
        StoreError: the generation cannot be read.
    """
    return {
        each.key: FilterCounts(
            generation.value_counts(each.column, each.type, FREQUENT_VALUES),
            generation.unread_values(each.column, UNREAD_EXAMPLES) if each.is_declared else UnreadValues(),
        )
        for each in filters
        if each.is_declared or has_few_values(each)
    }


def facets_of(counts: Mapping[str, FilterCounts]) -> dict[str, list[tuple[str, int]]]:
    """Return filter → its most frequent values, each with its number of chunks, for filters with few values."""
    return {
        key: [(spelled(each.value), each.chunks) for each in counted.values.frequent[:FACET_VALUES]]
        for key, counted in counts.items()
        if counted.values.frequent
    }


def described_filters(filters: Sequence[FilterSettings], counts: Mapping[str, FilterCounts]) -> list[JsonValue]:
    """Return the filters for ``describe``, with counts of documents and chunks for each value."""
    return [
        {
            "key": each.key,
            "type": each.type,
            **({"from": list(each.origins)} if each.is_declared else {}),
            **(_describe_counts(counts[each.key]) if each.key in counts else {}),
        }
        for each in filters
    ]


def spelled(value: Value) -> str:
    """Return a value as text for an address or the command line."""
    return f"{value:g}" if isinstance(value, float) and value.is_integer() and abs(value) < 1e6 else str(value)


def _describe_counts(counted: FilterCounts) -> dict[str, JsonValue]:
    values, unread = counted.values, counted.unread
    described: dict[str, JsonValue] = {
        "documents": values.documents,
        "distinct_values": values.distinct,
        "values": [
            {"value": each.value, "documents": each.documents, "chunks": each.chunks} for each in values.frequent
        ],
    }
    if values.least is not None:
        described |= {"min": values.least, "max": values.most}
    if unread.documents:
        examples = [{"source_path": each.path, "value": each.said, "reason": each.problem} for each in unread.examples]
        described["unread"] = {"documents": unread.documents, "examples": examples}
    return described
