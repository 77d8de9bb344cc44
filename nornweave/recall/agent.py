"""One domain's candidates for a query, from its published generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nornweave.store.generation import Generation, Hit
from nornweave.store.port import Vectors
from nornweave.types import Domain

# Candidates per retrieval source for each item asked for: combining and reranking need more than they return.
OVERFETCH = 3
MIN_CANDIDATES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """What the retrieval sources of one domain found.

    Attributes:
        hits: retrieval source → hits, best first.
    """

    domain: Domain
    hits: Mapping[str, tuple[Hit, ...]]

    def scores(self, source: str) -> dict[str, float]:
        """Return the source's scores by candidate name (``domain:number``, zero-padded so that names sort)."""
        return {candidate_name(self.domain, hit.chunk_no): hit.score for hit in self.hits[source]}


def candidate_name(domain: Domain, chunk_no: int) -> str:
    """Name a chunk across domains; the names of one domain sort like its numbers."""
    return f"{domain.value}:{chunk_no:09d}"


def recall(domain: Domain, generation: Generation, query: Vectors, terms: Sequence[str], top_k: int) -> Candidates:
    """Ask every retrieval source of one domain.

    Args:
        domain: whose generation it is.
        generation: open for reading.
        query: the query's vector, by the domain's encoder.
        terms: the query's terms, by the analyzer.
        top_k: items that will be wanted.
    """
    wanted = max(MIN_CANDIDATES, top_k * OVERFETCH)
    return Candidates(
        domain=domain,
        hits={
            "dense": tuple(generation.dense(query, wanted)),
            "sparse": tuple(generation.sparse(terms, wanted)) if terms else (),
        },
    )
