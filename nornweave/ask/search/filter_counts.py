"""What the filters of a domain find: their frequent values, and what could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nornweave.ask.search.filters import has_few_values
from nornweave.config import FilterSettings
from nornweave.core.types import JsonValue
from nornweave.index.index import Index
from nornweave.index.port import Mask
from nornweave.index.value_counts import UnreadValues, Value, ValueCounts

# Of a filter, as many frequent values as a reader looks through.
FREQUENT_VALUES = 20
UNREAD_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class FilterCounts:
    """What one filter finds."""

    values: ValueCounts
    unread: UnreadValues


def count_filters(
    generation: Index, filters: Sequence[FilterSettings], within: Mask | None = None
) -> dict[str, FilterCounts]:
    """Count the values of every filter that has some to count, by key.

    Args:
        generation: what answers.
        filters: of its domain.
        within: which chunks may be counted; all without.

    Raises:
        StoreError: the generation cannot be read.
    """
    return {
        each.key: FilterCounts(
            generation.value_counts(each.column, each.type, FREQUENT_VALUES, within),
            generation.unread_values(each.column, UNREAD_EXAMPLES, within) if each.is_declared else UnreadValues(),
        )
        for each in filters
        if each.is_declared or has_few_values(each)
    }


def described_filters(filters: Sequence[FilterSettings], counts: Mapping[str, FilterCounts]) -> list[JsonValue]:
    """Return the filters as ``describe`` shows them, with counts of documents and chunks of each value."""
    return [
        {
            "key": each.key,
            "type": each.type,
            **({"from": list(each.origins)} if each.is_declared else {}),
            **(_described(counts[each.key]) if each.key in counts else {}),
        }
        for each in filters
    ]


def spelled(value: Value) -> str:
    """Return a value as it is written in an address or on the command line."""
    return f"{value:g}" if isinstance(value, float) and value.is_integer() and abs(value) < 1e6 else str(value)


def _described(counted: FilterCounts) -> dict[str, JsonValue]:
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
