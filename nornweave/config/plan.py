"""Settings of a plan: the weights and switches that evaluations tune."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from nornweave.config.base import FrozenSettings


class _Weights(FrozenSettings):
    """Weights, at least one of which must be positive."""

    if_none: ClassVar[str]
    """What is said when all are 0."""

    @model_validator(mode="after")
    def _count_for_something(self) -> Self:
        if not any(self.values):
            raise ValueError(self.if_none)
        return self

    @property
    def values(self) -> tuple[float, ...]:
        """Return the weights in the order in which they are declared."""
        return tuple(getattr(self, name) for name in type(self).model_fields)


class SourceWeights(_Weights):
    """The weight of each retrieval source; only their proportion matters."""

    dense: float = Field(0.4, ge=0, le=1)
    sparse: float = Field(0.4, ge=0, le=1)
    fulltext: float = Field(0.15, ge=0, le=1)
    structured: float = Field(0.05, ge=0, le=1)

    if_none = "all weights are 0; at least one retrieval source must count"


class FieldWeights(_Weights):
    """The weight of each field in BM25, in the order of ``types.FIELDS``."""

    path: float = Field(1, ge=0, le=10)
    title: float = Field(1, ge=0, le=10)
    """What the document and the chunk are called, the number of a thread, the language of code."""
    section: float = Field(1, ge=0, le=10)
    content: float = Field(1, ge=0, le=10)

    if_none = "all fields count 0; at least one must count"


class Bm25Settings(FrozenSettings):
    """How BM25 weighs the occurrences of a term: saturation, length normalisation, and a weight for each field."""

    fields: FieldWeights = FieldWeights()
    k1: float = Field(1.2, ge=0.01, le=10)
    """Saturation: how much more a term counts for each time that it is repeated."""
    b: float = Field(0.75, ge=0, le=1)
    """Length normalisation: how much more a term counts for in a short chunk."""

    @property
    def bound(self) -> float:
        """Return the limit of what a term counts for before idf, however often it stands in a chunk."""
        return self.k1 + 1


class PlanSettings(Bm25Settings):
    """How a domain answers, BM25 included: what evaluations tune (docs/recall.md has the measurements)."""

    combine: Literal["convex", "rrf"] = "convex"
    weights: SourceWeights = SourceWeights()
    document_share: float = Field(0.1, ge=0, le=1)
    """Share of a term's BM25 weight that a chunk takes from where its document says it best."""
    function_words: float = Field(0.3, ge=0, le=1)
    """What "how", "the" and the like count for beside other terms of the same rarity."""
    late_interaction: float = Field(0, ge=0, le=1)
    """Weight of how well the words of a query match those of the best chunks one by one, beside 1 for all sources.

    The sync keeps vectors of tokens where this is above 0 and the encoder has them."""
    expand: bool = False
    """Whether ``expand: auto`` may add variants of the query besides acronyms, which it always may."""
    rerank: bool = False
    """Whether ``rerank: auto`` uses the domain's cross-encoder, which is looked for at start then."""
    heuristics: bool = False
    """Whether the domain's heuristics reorder without a cross-encoder."""

    @property
    def bm25(self) -> Bm25Settings:
        """Return the settings of BM25 alone."""
        return Bm25Settings(k1=self.k1, b=self.b, fields=self.fields)
