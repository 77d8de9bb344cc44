"""Find a judged set in the searched domains: its own domain, and the places of its documents.

What is searched comes in through ``Searcher``, which ``searching.py`` satisfies for an engine; no storage is
known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evals.judgments import JudgedQuery, JudgedSet, Judgment, JudgmentError
from evals.searching import Rankings
from nornweave.ask.search.question import View
from nornweave.ask.search.records import Filters
from nornweave.core.types import Domain


class Searcher(Protocol):
    """The measured search."""

    def rankings(
        self,
        text: str,
        *,
        domains: Sequence[Domain] | None,
        filters: Mapping[Domain, Filters],
        depth: int,
        views: Mapping[Domain, View] = ...,
    ) -> Rankings:
        """Return the findings of every stage, best first; see ``PathSearcher.rankings``."""
        ...

    def domain_of(self, paths: Collection[str]) -> Mapping[str, Domain]:
        """Return the domain of each document, by its path in its source. Unknown paths are left out."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTarget:
    """A judged set and the places of its documents.

    Attributes:
        queries: those with a relevant judgment that counts.
        relevant: their relevant judgments that count, by query.
        domain: the set's own.
        held: path → the domain that holds the document, for those that are published.
        missing: judged paths that nothing published holds.
        moved: judged paths and where their documents lie now, of those that moved.
    """

    judged: JudgedSet
    queries: tuple[JudgedQuery, ...]
    relevant: Mapping[str, tuple[Judgment, ...]]
    domain: Domain
    held: Mapping[str, Domain]
    missing: tuple[str, ...]
    moved: tuple[tuple[str, str], ...] = ()


def locate(
    searcher: Searcher, judged: JudgedSet, domains: Sequence[Domain] = (), *, count_missing: bool = False
) -> RunTarget:
    """Find the domain of a set and the places of its documents; see ``runs.evaluate``.

    Raises:
        JudgmentError: the set's domain cannot be told, or none of its documents is published.
    """
    relevant = judged.relevant
    paths = sorted({judgment.path for judgments in relevant.values() for judgment in judgments})
    places = {judgment.path: judgment.paths for of_query in relevant.values() for judgment in of_query}
    held = searcher.domain_of({place for each in places.values() for place in each})
    is_held = {path: any(place in held for place in each) for path, each in places.items()}
    domain = domain_of_set(judged.name, paths, held, domains)
    if not count_missing:
        kept = {
            query: tuple(judgment for judgment in of_query if is_held[judgment.path])
            for query, of_query in relevant.items()
        }
        relevant = {query: of_query for query, of_query in kept.items() if of_query}
    if not relevant:
        raise _not_published(judged.name, paths, domains)
    return RunTarget(
        judged=judged,
        queries=tuple(query for query in judged.queries if query.id in relevant),
        relevant=relevant,
        domain=domain,
        held=held,
        missing=tuple(path for path in paths if not is_held[path]),
        moved=tuple((path, places[path][-1]) for path in paths if is_held[path] and path not in held),
    )


def domain_of_set(
    name: str, paths: Sequence[str], held: Mapping[str, Domain], allowed: Sequence[Domain] = ()
) -> Domain:
    """Return the domain of a set: the only one allowed, or the one with most of the judged documents.

    Raises:
        JudgmentError: none of the documents lies in a domain that is allowed.
    """
    if len(allowed) == 1:
        return allowed[0]
    counts = Counter(domain for domain in held.values() if not allowed or domain in allowed)
    if not counts:
        raise _not_published(name, paths, allowed)
    return max(Domain, key=lambda domain: counts[domain])


def _not_published(name: str, paths: Sequence[str], allowed: Sequence[Domain]) -> JudgmentError:
    among = f" of {', '.join(allowed)}" if allowed else ""
    looked_for = ", ".join(paths[:3])
    return JudgmentError(
        f"judged set {name!r}: none of its {len(paths)} judged documents is in a published generation{among} "
        f"(looked for {looked_for}, …); sync the source that holds them, with paths relative to it, or name the "
        "domain with --domain"
    )
