"""The served domains with their sizes and filters, and links that narrow a question down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.pages.addresses import age_of
from api.pages.question_form import SEVERAL, Declared, QuestionForm
from nornweave.ask.search.filters import NODE_TYPE, RANGE_ENDS, kind_of
from nornweave.ask.seen.agents import SeenAgent
from nornweave.ask.views.answer import FusedItemDocument

_LABELS = {
    "path_glob": "path",
    "node_type": "kind",
    "source_type": "kind",
    "heading_path": "heading",
    "date_range": "between",
    "since": "changed since",
}
# How a filter is asked for, by its type; another one by its values.
_KINDS = {"date_range": "days", "date": "days", "datetime": "day", "integer": "numbers", "number": "numbers"}
DATED = ("date_range", "date", "datetime")
_EXAMPLES = {"path_glob": "src/**/*.py", "heading_path": "Install > Linux"}
_KIND_LABELS = {"preamble": "head of a file"}
# Filter → its name for readers. Filters of one name stand together.
_FACETS = {
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
MAX_VALUES = 6
"""Of a facet."""

FacetValue = tuple[str, str, str]
"""Domain, filter and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterChoice:
    """A filter: its type, its most frequent values with their numbers of passages, and whether it is worth showing."""

    key: str
    type: str
    values: tuple[tuple[str, int], ...]
    is_useful: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainChoice:
    """A served domain."""

    domain: str
    name: str
    description: str
    state: str
    generation: str | None
    indexed_at: str | None
    documents: int
    passages: int
    filters: tuple[FilterChoice, ...]


@dataclass(frozen=True, slots=True)
class Chip:
    """A link that turns a domain or a filter value on or off, and the number of its passages."""

    label: str
    count: int
    is_on: bool
    href: str
    domain: str = ""


def catalogue_of(agents: Sequence[SeenAgent]) -> tuple[DomainChoice, ...]:
    """Return the served domains by their agents' descriptions. A domain without a generation has no sizes."""
    return tuple(_choice(agent) for agent in agents)


def declared_in(catalogue: Sequence[DomainChoice]) -> Declared:
    """Return the type of each filter that may be asked for, by domain and key."""
    return {choice.domain: {each.key: each.type for each in choice.filters} for choice in catalogue}


def domain_chips(catalogue: Sequence[DomainChoice], form: QuestionForm) -> tuple[Chip, ...]:
    """Return a chip for each domain."""
    return tuple(
        Chip(
            choice.domain,
            choice.passages,
            choice.domain in form.domains,
            form.with_domain_toggled(choice.domain).address,
            choice.domain,
        )
        for choice in catalogue
    )


def filters_in_force(form: QuestionForm) -> tuple[Chip, ...]:
    """Return a chip for each filter that is in use; a click removes the filter."""
    return tuple(
        Chip(
            f"{_label_of(name)}: {value_label(name.partition('.')[2], value)}",
            0,
            True,
            form.narrowed("", [(name, value)], several=True).address,
        )
        for name, value in form.filters
    )


def _label_of(name: str) -> str:
    _, key, *end = name.split(".")
    return " ".join((_LABELS.get(key, key.replace("_", " ")), *end))


def value_label(key: str, value: str) -> str:
    """Return a filter value in words."""
    return _KIND_LABELS.get(value, value.replace("_", " ")) if key == NODE_TYPE else value


def filter_groups(catalogue: Sequence[DomainChoice], form: QuestionForm) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the filters of each domain that is asked, for the form."""
    return [
        (choice.domain, [_field(choice.domain, each, form) for each in choice.filters if each.is_useful])
        for choice in catalogue
        if choice.filters and (not form.domains or choice.domain in form.domains)
    ]


def facets_of(
    items: Sequence[FusedItemDocument], catalogue: Sequence[DomainChoice], form: QuestionForm
) -> list[tuple[str, list[Chip]]]:
    """Count the values of an answer's passages, most frequent first, as links that narrow the question down.

    A facet with only one value is left out unless it is chosen, because it would not narrow the question down.
    """
    declared = declared_in(catalogue)
    counts: dict[str, Counter[FacetValue]] = {name: Counter() for name in _FACETS.values()}
    for item in items:
        domain = item["citation"]["domain_id"]
        if item["citation"]["agent_id"] is None:
            for key in _FACETS.keys() & declared.get(domain, {}).keys():
                counts[_FACETS[key]].update((domain, key, value) for value in dict.fromkeys(_values_of(item, key)))
    facets = [(name, list(_facet_values(values, declared, form))) for name, values in counts.items()]
    return [(name, chips) for name, chips in facets if len(chips) > 1 or any(chip.is_on for chip in chips)]


def _values_of(item: FusedItemDocument, key: str) -> Sequence[str]:
    if key == "source":
        return [item["citation"]["source_id"]]
    if key == "date_range":
        return [item["citation"]["timestamp"][:4]] if item["citation"]["timestamp"] else []
    value: Any = item["metadata"].get(key)
    if isinstance(value, list | tuple):
        return [str(each).lower() for each in value]
    return [kind_of(value) if key == NODE_TYPE else value] if value else []


def _facet_values(counts: Counter[FacetValue], declared: Declared, form: QuestionForm) -> Iterator[Chip]:
    shown = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:MAX_VALUES]
    names = Counter(value for (_, _, value), _ in shown)
    for (domain, key, value), count in shown:
        label, name = value_label(key, value), f"{domain}.{key}"
        pairs = [(name, value.removeprefix("#") if key == "channel" else value)]
        if key == "date_range":
            pairs = [(f"{name}.start", f"{value}-01-01"), (f"{name}.end", f"{value}-12-31")]
        yield Chip(
            label if names[value] == 1 else f"{label} ({domain})",
            count,
            all(pair in form.filters for pair in pairs),
            form.narrowed(domain, pairs, several=declared[domain][key] in SEVERAL).address,
            domain,
        )


def ages(catalogue: Sequence[DomainChoice], now: datetime) -> Mapping[str, str]:
    """Return the age of each domain's published generation, in words."""
    return {choice.domain: age_of(choice.indexed_at, now) for choice in catalogue}


def _choice(agent: SeenAgent) -> DomainChoice:
    described: Mapping[str, Any] = agent.describe()
    values = agent.facets()
    return DomainChoice(
        domain=agent.domain.value,
        name=described.get("name", ""),
        description=described.get("description", ""),
        state=agent.state.value,
        generation=described.get("generation"),
        indexed_at=described.get("indexed_at"),
        documents=described.get("documents", 0),
        passages=described.get("chunks", 0),
        filters=tuple(
            FilterChoice(
                key=each["key"],
                type=each["type"],
                values=_merged_kinds(values.get(NODE_TYPE, ()))
                if each["key"] == NODE_TYPE
                else tuple(values.get(each["key"], ())),
                # Some filters depend on metadata that documents need not have. Without it they are not shown.
                is_useful=each.get("distinct_values", 0) > 1
                if each["key"] == "source"
                else "from" not in each or each.get("documents", 0) > 0,
            )
            for each in described.get("filters", ())
        ),
    )


def _merged_kinds(values: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Count kinds of code under names that are the same for every language's grammar."""
    kinds: Counter[str] = Counter()
    for value, count in values:
        kinds[kind_of(value)] += count
    return tuple(kinds.most_common())


def _field(domain: str, declared: FilterChoice, form: QuestionForm) -> dict[str, Any]:
    """Return a filter as a field of the form: boxes of frequent values, a text field, days or numbers.

    If ``several`` is true, several boxes may be chosen. Each box has a value, a label, a count and whether
    it is chosen.
    """
    name = f"{domain}.{declared.key}"
    stated, known = form.values(name), dict(declared.values)
    start, end = RANGE_ENDS.get(declared.type, ("", ""))
    shown = dict.fromkeys((*known, *stated)) if known else ()
    zone = " (UTC)" if declared.type in DATED else ""
    return {
        "name": name,
        "label": _LABELS.get(declared.key, declared.key.replace("_", " ")) + zone,
        "kind": _KINDS.get(declared.type, "boxes" if known else "text"),
        "several": declared.type in SEVERAL,
        "boxes": [(value, value_label(declared.key, value), known.get(value, 0), value in stated) for value in shown],
        "value": next(iter(form.values(f"{name}.{start}") if start else stated), ""),
        "end": next(iter(form.values(f"{name}.{end}")), ""),
        "example": _EXAMPLES.get(declared.key, ""),
    }
