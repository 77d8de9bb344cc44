"""What the shown passages have in common, counted: links that narrow a question down to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.pages.catalogue import DomainChoice, value_label
from api.pages.question_form import SEVERAL, QuestionForm
from nornweave.ask.search.filters import NODE_TYPE, kind_of
from nornweave.ask.views.answer import FusedItemDocument

MAX_VALUES = 6
# Filter → what a reader calls it; several filters of one name stand together.
_NAMES = {
    "source": "Source",
    "language": "Language",
    "node_type": "Kind",
    "source_type": "Kind",
    "format": "Format",
    "channel": "Channel",
    "participants": "Who",
    "authors": "Who",
    "date_range": "Year",
    "tags": "Tag",
}


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A value with how many of the shown passages have it, and where a click leads."""

    label: str
    count: int
    is_on: bool
    href: str
    domain: str


@dataclass(frozen=True, slots=True)
class Facet:
    """One thing that passages differ in."""

    name: str
    values: tuple[FacetValue, ...]


def facets_of(
    items: Sequence[FusedItemDocument], catalogue: Sequence[DomainChoice], form: QuestionForm
) -> tuple[Facet, ...]:
    """Count the values that the passages of an answer have, most frequent first.

    A name with one value is left out, unless it is chosen: it would narrow nothing down.
    """
    declared = {choice.domain: {each.key: each.type for each in choice.filters} for choice in catalogue}
    counts: dict[str, Counter[tuple[str, str, str]]] = {name: Counter() for name in _NAMES.values()}
    for item in items:
        if item["citation"]["agent_id"] is None:
            domain = item["citation"]["domain_id"]
            for key in _NAMES.keys() & declared.get(domain, {}).keys():
                counts[_NAMES[key]].update((domain, key, value) for value in dict.fromkeys(_values(item, key)))
    facets = (Facet(name, tuple(_shown(values, declared, form))) for name, values in counts.items())
    return tuple(facet for facet in facets if len(facet.values) > 1 or any(value.is_on for value in facet.values))


def _values(item: FusedItemDocument, key: str) -> Iterator[str]:
    if key == "source":
        yield item["citation"]["source_id"]
    elif key == "date_range":
        yield from [(item["citation"]["timestamp"] or "")[:4]] if item["citation"]["timestamp"] else []
    else:
        value: Any = item["metadata"].get(key)
        if key == NODE_TYPE and value:
            value = kind_of(value)
        yield from (
            (str(each).lower() for each in value) if isinstance(value, list | tuple) else [value] if value else []
        )


def _shown(
    counts: Counter[tuple[str, str, str]], declared: Mapping[str, Mapping[str, str]], form: QuestionForm
) -> Iterator[FacetValue]:
    shown = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:MAX_VALUES]
    names = Counter(value for (_, _, value), _ in shown)
    for (domain, key, value), count in shown:
        pairs = _pairs(f"{domain}.{key}", key, value)
        label = value_label(key, value)
        yield FacetValue(
            label=label if names[value] == 1 else f"{label} ({domain})",
            count=count,
            is_on=all(pair in form.filters for pair in pairs),
            href=form.narrowed(domain, pairs, several=declared[domain][key] in SEVERAL).address,
            domain=domain,
        )


def _pairs(name: str, key: str, value: str) -> tuple[tuple[str, str], ...]:
    if key == "date_range":
        return (f"{name}.start", f"{value}-01-01"), (f"{name}.end", f"{value}-12-31")
    return ((name, value.removeprefix("#") if key == "channel" else value),)
