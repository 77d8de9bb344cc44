"""A searcher over texts held in memory: it ranks by the words that a text shares with the query."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from evals.searching import Rankings
from nornweave.ask.search.question import View
from nornweave.ask.search.records import Citation, Filters
from nornweave.core.errors import QueryError, StoreError
from nornweave.core.types import Domain


@dataclass(frozen=True)
class Passage:
    """A chunk: where it stands and what it says."""

    domain: Domain
    path: str
    text: str
    lines: tuple[int, int] | None = None
    messages: tuple[str, ...] | None = None
    source: str = "only"

    @property
    def citation(self) -> Citation:
        return Citation(
            domain_id=self.domain,
            source_id=self.source,
            source_path=self.path,
            timestamp=None,
            line_range=self.lines,
            char_range=(0, len(self.text)),
            page=None,
            section=None,
            message_ids=self.messages,
            url=None,
            title=None,
            revision=None,
            stale=False,
        )


@dataclass
class WordSearcher:
    """Stages: ``sparse`` (shared words), ``structured`` (words of the path) and ``answer`` (both); ties as listed.

    The only filter is ``folder``; a domain that is ``damaged`` cannot be read.
    """

    passages: Sequence[Passage]
    damaged: Collection[Domain] = ()
    asked: list[tuple[str, Sequence[Domain] | None, Mapping[Domain, Filters], int]] = field(default_factory=list)

    def rankings(
        self,
        text: str,
        *,
        domains: Sequence[Domain] | None,
        filters: Mapping[Domain, Filters],
        depth: int,
        views: Mapping[Domain, View] = MappingProxyType({}),
    ) -> Rankings:
        self.asked.append((text, domains, filters, depth))
        words = set(text.lower().split())
        if not words:
            raise QueryError("query", "blank; ask something")
        for domain in domains or Domain:
            if domain in self.damaged:
                raise StoreError(f"{domain.value}: cannot be read")
        candidates = [passage for passage in self.passages if self._passes(passage, domains, filters)]
        shared = {passage: len(words & set(passage.text.lower().split())) for passage in candidates}
        named = {passage: sum(word in passage.path for word in words) for passage in candidates}
        both = {passage: shared[passage] + named[passage] for passage in candidates}
        stages = {"fused": both, "structured": named, "sparse": shared}
        best = max(both.values(), default=0) / (len(words) * 2)
        return Rankings({name: _ranked(scores, depth) for name, scores in stages.items()}, best or None)

    def domain_of(self, paths: Collection[str]) -> Mapping[str, Domain]:
        return {passage.path: passage.domain for passage in reversed(self.passages) if passage.path in paths}

    def _passes(self, passage: Passage, domains: Sequence[Domain] | None, filters: Mapping[Domain, Filters]) -> bool:
        wanted = filters.get(passage.domain, {})
        if unknown := set(wanted) - {"folder"}:
            raise QueryError(f"filters.{passage.domain.value}.{min(unknown)}", "unknown; allowed: folder")
        return (domains is None or passage.domain in domains) and passage.path.startswith(str(wanted.get("folder", "")))


def _ranked(scores: Mapping[Passage, int], depth: int) -> tuple[Citation, ...]:
    found = [passage for passage, score in scores.items() if score]
    return tuple(passage.citation for passage in sorted(found, key=lambda one: -scores[one])[:depth])
