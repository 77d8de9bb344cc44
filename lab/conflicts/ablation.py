"""What each reader of facts earns beside learned templates: pairs, planted changes and coverage without it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.conflicts import planted as planting
from lab.conflicts.pairs import OWN, Pair, judge, load_pairs
from lab.conflicts.repositories import Repository
from nornweave.disagree.facts.documentation import literals

_FACTS = "nornweave.disagree.facts."


def _nothing(*_arguments: Any, **_named: Any) -> tuple[Any, ...]:
    return ()


def _none(*_arguments: Any, **_named: Any) -> None:
    return None


def _as_is(sentence: Any, *_arguments: Any, **_named: Any) -> Any:
    return sentence


Replaced = tuple[str, str, Callable[..., Any]]
READERS: dict[str, tuple[Replaced, ...]] = {
    "nothing": (),
    "quantities in plain words": (
        ("documentation.prose", "topic_facts", _nothing),
        ("documentation.prose", "is_worth_reading", _none),
    ),
    "required versions in prose": (("documentation.properties", "requires", _nothing),),
    "statuses": (("documentation.properties", "status", _nothing), ("code", "read_statuses", _none)),
    "choices": (("documentation.entries", "choices_at", _none), ("documentation.tables", "choices_at", _none)),
    "fields of docstrings": (("documentation.reader", "read_field", _none),),
    "entries": (("documentation.reader", "read_entry", _none),),
    "mappings of entries": (("documentation.entries", "mapping", _nothing),),
    "comments of unparsed code": (("documentation", "fragments_of", _nothing),),
    "tables of markup": (("documentation", "html_tables", _nothing),),
    "aligned columns": (("documentation.reader", "aligned_rows", _nothing),),
    "tables": (("documentation.reader", "read_table", lambda *_: ([], None)),),
    "sentences": (("documentation.reader", "prose_facts", _nothing),),
    "names of sentences before": (("documentation.prose", "_before", _nothing),),
    "noun phrases": (("documentation.prose", "noun_before", lambda *_: ""),),
    "qualifiers": (("documentation.page", "qualifiers_of", _nothing),),
    "comments of code": (("extract", "_within", _nothing),),
    "damaged code": (("code", "read_fragments", _none),),
    "declared options": (("code.sites", "call_of", _none), ("code.calls", "call_of", _none)),
    "manifests": (
        ("configuration", "line_requirements", _nothing),
        ("configuration", "entry_requirements", _nothing),
    ),
    "configuration": (("extract", "configuration_facts", _nothing),),
}


@dataclass(frozen=True, slots=True)
class Ablated:
    """What is found without a reader."""

    without: str
    pairs: str
    own: str
    planted: str
    agreements: int


@contextmanager
def without(replaced: Sequence[Replaced]) -> Iterator[None]:
    """Replace functions by ones that read nothing."""
    literals.value_of_code.cache_clear()
    kept = []
    for module_name, name, other in replaced:
        module = importlib.import_module((_FACTS + module_name).rstrip("."))
        if hasattr(module, name):
            kept.append((module, name, getattr(module, name)))
            setattr(module, name, other)
    try:
        yield
    finally:
        for module, name, original in kept:
            setattr(module, name, original)


def ablate(
    repositories: Sequence[Repository], pairs: Path, *, seed: int, each: int, only: str = ""
) -> Iterator[Ablated]:
    """Measure without each reader, one after the other."""
    labelled, own = load_pairs(pairs), load_pairs(OWN)
    for name, replaced in READERS.items():
        if only not in name:
            continue
        with without(replaced):
            bases = [planting.Base(repository) for repository in repositories]
            done = [one for base in bases for one in base.plant(seed=seed, each=each)]
            found = sum(one.is_found for one in done)
            yield Ablated(name, _figures(labelled), _figures(own), f"{found}/{len(done)}", sum(map(_agreeing, bases)))


def _agreeing(base: planting.Base) -> int:
    return len({one.key[:2] for one in base.before.agreements})


def _figures(pairs: Sequence[Pair]) -> str:
    outcomes = list(judge(pairs))
    right = sum(one.is_alarm and one.pair.is_conflict for one in outcomes)
    return f"{right} right, {sum(one.is_alarm for one in outcomes) - right} false"
