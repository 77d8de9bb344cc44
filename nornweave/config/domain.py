"""Settings of one domain: chunking, embedding, plan, reranking, storage, filters, evaluation.

A plan holds the weights and switches of retrieval. A built-in filter looks at a column that the store fills. A declared
one has a type and says where in a document its value stands (its origins)::

    filters:
      - {key: environment, type: keyword, from: [metadata.environment, front_matter.environment]}
      - {key: service, type: keyword, from: "path:services/{service}/**"}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from nornweave.config.base import FrozenSettings
from nornweave.core.types import Domain

BuiltInType: TypeAlias = Literal["string", "datetime", "list", "date_range"]
DeclaredType: TypeAlias = Literal["keyword", "integer", "number", "boolean", "date"]

ORIGINS = "front_matter.KEY, metadata.KEY, path:GLOB with a {key} in it, source.id or source.type"
PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_-]*)\}")
MAX_ORIGINS = 8
MAX_DECLARED = 64
_NAMED = re.compile(r"(front_matter|metadata)\.([^\s.\"\x00-\x1f]{1,100}(?:\.[^\s.\"\x00-\x1f]{1,100}){0,7})")
_SOURCE = frozenset({"source.id", "source.type"})
_COLUMN = "declared."


class FilterSettings(FrozenSettings):
    """A filter of a domain.

    Attributes:
        column: the column in the store, a plain name and no SQL expression.
        origins: the places of a document that can hold the value of a declared filter. The first place with a value
            counts. Empty for a built-in filter.
    """

    key: str
    type: BuiltInType | DeclaredType
    column: str
    origins: tuple[str, ...] = ()

    @property
    def is_declared(self) -> bool:
        """Tell whether the filter reads its values from the documents (``origins``)."""
        return bool(self.origins)


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class DeclaredFilter(FrozenSettings):
    """A filter in ``nornweave.yaml``."""

    key: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", max_length=64)]
    type: DeclaredType
    origins: Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1, max_length=MAX_ORIGINS)] = Field(
        alias="from"
    )

    @model_validator(mode="after")
    def _has_known_origins(self) -> DeclaredFilter:
        for origin in self.origins:
            if problem := self._problem(origin):
                message = f"from: {origin!r} {problem}"
                raise ValueError(message)
        return self

    def _problem(self, origin: str) -> str | None:
        if origin in _SOURCE:
            return None if self.type == "keyword" else f"is a name; type {self.type!r} cannot hold it, keyword can"
        if origin.startswith("path:"):
            return _path_problem(origin.removeprefix("path:"), self.key)
        return None if _NAMED.fullmatch(origin) else f"is not a known origin; expected {ORIGINS}"

    def settings(self) -> FilterSettings:
        """Return the filter's settings with its column."""
        return FilterSettings(key=self.key, type=self.type, column=_COLUMN + self.key, origins=self.origins)


class DomainFilters(FrozenSettings):
    """The declared filters of one domain."""

    filters: Annotated[tuple[DeclaredFilter, ...], Field(max_length=MAX_DECLARED)] = ()


def _path_problem(glob: str, key: str) -> str | None:
    if len(glob) > 500 or glob.startswith("/") or ".." in glob.split("/"):
        return "is not a path inside a source: at most 500 characters, no leading '/', no '..'"
    names = PLACEHOLDER.findall(glob)
    if names.count(key) != 1:
        return f"does not say where the value stands; write {{{key}}} once in it, such as path:docs/{{{key}}}/**"
    if not set("{}").isdisjoint(PLACEHOLDER.sub("", glob)):
        return "has a brace that belongs to no {name}; names are lower-case letters, digits, '_' and '-'"
    if any(len(PLACEHOLDER.findall(part)) > 1 for part in glob.split("/")):
        return "has two names between two slashes; where one ends cannot be told"
    return None


def _usual(key: str, kind: DeclaredType, *names: str) -> FilterSettings:
    origins = [f"{place}.{name}" for name in names for place in ("metadata", "front_matter")]
    return DeclaredFilter.model_validate({"key": key, "type": kind, "from": origins}).settings()


# They work where documents have these fields. A team that uses such a key otherwise declares its own.
USUAL_FILTERS = (
    _usual("category", "keyword", "category"),
    _usual("environment", "keyword", "environment"),
    _usual("confidence", "number", "confidence", "confidence_score"),
    _usual("error_category", "keyword", "error_category"),
)


def with_usual_and_declared(
    built_in: Sequence[FilterSettings], declared: Sequence[DeclaredFilter]
) -> tuple[FilterSettings, ...]:
    """Return all filters of a domain: built-in filters, ``USUAL_FILTERS`` that are not redeclared, declared filters.

    Raises:
        ValueError: a key is declared twice, or a built-in filter has it.
    """
    reserved = {each.key: each for each in built_in}
    own: dict[str, FilterSettings] = {}
    for each in declared:
        if each.key in reserved:
            there = reserved[each.key]
            message = (
                f"{each.key!r} (type {each.type}, from {', '.join(each.origins)}) collides with the built-in filter "
                f"{there.key!r} (type {there.type}, of {there.column}); choose another key"
            )
            raise ValueError(message)
        if each.key in own:
            message = f"{each.key!r} is declared twice; every filter needs its own key"
            raise ValueError(message)
        own[each.key] = each.settings()
    usual = [each for each in USUAL_FILTERS if each.key not in own and each.key not in reserved]
    return (*built_in, *usual, *own.values())


class _Weights(FrozenSettings):
    """Some weights, of which at least one must be positive."""

    if_none: ClassVar[str]
    """What is said when all are 0."""

    @model_validator(mode="after")
    def _check_any_positive(self) -> Self:
        if not any(self.values):
            raise ValueError(self.if_none)
        return self

    @property
    def values(self) -> tuple[float, ...]:
        """Return the weights in the order of their declaration."""
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
    """How BM25 weighs the occurrences of a term: saturation ``k1``, length normalisation ``b`` and field weights."""

    fields: FieldWeights = FieldWeights()
    k1: float = Field(1.2, ge=0.01, le=10)
    """Saturation: how much more a term counts for each time that it is repeated."""
    b: float = Field(0.75, ge=0, le=1)
    """Length normalisation: how much more a term counts for in a short chunk."""

    @property
    def bound(self) -> float:
        """Return a weight that no term exceeds before idf, however often it occurs."""
        return self.k1 + 1


class PlanSettings(Bm25Settings):
    """The weights and switches of a domain's retrieval, BM25 included (docs/recall.md has the measurements)."""

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
    query_map: bool = True
    """Whether questions are mapped by what the domain has learnt from its commits."""

    @property
    def bm25(self) -> Bm25Settings:
        """Return the settings of BM25 alone."""
        return _bm25(self.k1, self.b, self.fields)


@lru_cache(maxsize=64)
def _bm25(k1: float, b: float, fields: FieldWeights) -> Bm25Settings:
    return Bm25Settings(k1=k1, b=b, fields=fields)


class ChunkingSettings(FrozenSettings):
    """How documents of a domain are cut into chunks."""

    strategy: Literal["SYNTAX_AWARE", "HIERARCHICAL_SECTIONS", "MESSAGE_BOUNDARY", "RECURSIVE_CHARACTER"]
    max_chunk_tokens: int = Field(512, ge=16, le=8192)
    language_grammars: tuple[str, ...] = ()


class EmbeddingSettings(FrozenSettings):
    """Which encoder a domain uses."""

    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    dimensions: int | None = Field(None, ge=1, le=8192)
    batch_size: int = Field(32, ge=1, le=4096)
    device: Literal["cpu", "cuda"] = "cpu"
    precision: Literal["auto", "float", "int8"] = "auto"


BonusSetting: TypeAlias = Literal["symbol_match_bonus", "heading_match_bonus", "recency_bonus_max"]


class RerankingWeights(FrozenSettings):
    """The weights of relevance and bonuses."""

    model: float = Field(0.7, gt=0, le=1)
    """Of the cross-encoder's score, or of the combined score that takes its place."""
    heuristic: float | None = Field(None, ge=0, le=1)
    """Of every bonus; null takes those of the table in ``ask/search/rerank.py``."""


class RerankingSettings(FrozenSettings):
    """How recall reranks candidates."""

    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] | None = None
    """A cross-encoder's name or folder; null reranks without."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where the cross-encoder runs."""
    overfetch_factor: int = Field(3, ge=1, le=20)
    heuristics: Mapping[BonusSetting, Annotated[float, Field(ge=0, le=1)]] = {}
    """Highest bonuses that differ from the table in ``ask/search/rerank.py``; 0 turns a heuristic off."""
    weights: RerankingWeights = RerankingWeights()


class KeepSettings(FrozenSettings):
    """Which older generations stay: the last one of each of the newest ``days``, ``weeks`` and ``months``."""

    days: int = Field(0, ge=0, le=3_660)
    weeks: int = Field(0, ge=0, le=520)
    months: int = Field(0, ge=0, le=120)


class StorageSettings(FrozenSettings):
    """How a domain's generations are built, and which generations are kept."""

    vector_index: Literal["auto", "exact", "hnsw"] = "auto"
    hnsw_m: int = Field(16, ge=2, le=128)
    hnsw_ef_construction: int = Field(128, ge=8, le=2048)
    hnsw_ef_search: int = Field(512, ge=8, le=4096)
    keep_generations: int = Field(3, ge=1, le=100)
    keep: KeepSettings | None = None
    """What stays beside the newest ``keep_generations``; nothing without."""


class EvaluationSettings(FrozenSettings):
    """How a domain's quality is measured, and which new generations are refused."""

    judgments: tuple[Path, ...] = ()
    """Folders of judged sets (``docs/evaluation.md``), relative to the file that names them."""
    generated: int = Field(0, ge=0, le=1000)
    """Queries made out of the corpus that candidates are measured with as well."""
    gate: bool = True
    """Whether a candidate that is worse than what is published is held back."""
    margin: float = Field(0.02, ge=0, le=1)
    """Recall@10 and MRR of the answers may drop by so much; a larger drop counts if it is beyond chance."""
    source_margin: float = Field(0.05, ge=0, le=1)
    """So may those of dense and of sparse retrieval alone, for which the other makes up at first."""
    lost_share: float = Field(0.25, ge=0, le=1)
    """Of a set of at most 12 questions, more than this share that fell out of the first ten holds back; 1: never."""
    floors: Mapping[
        Literal["Recall@10", "RR@10", "nDCG@10", "P@5", "Success@1"], Annotated[float, Field(ge=0, le=1)]
    ] = {}
    """What the answers must reach on every judged set made by people, whatever is published."""
    min_score: float | None = Field(None, ge=0, le=1)
    """Below this a best item is taken to say that there is no answer; judged by the sets' unanswerable questions."""


class DomainSettings(FrozenSettings):
    """The settings of one domain. They come from its domain file, and ``nornweave.yaml`` overrides them."""

    agent_id: str
    domain_id: Domain
    name: str
    description: str
    chunking: ChunkingSettings
    embedding: EmbeddingSettings = EmbeddingSettings()
    reranking: RerankingSettings = RerankingSettings()
    storage: StorageSettings = StorageSettings()
    filters: tuple[FilterSettings, ...] = ()
    plan: PlanSettings = PlanSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
