"""Settings of one domain: chunking, embedding, reranking, storage, filters, evaluation."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from nornweave.config.base import FrozenSettings
from nornweave.config.filters import FilterSettings
from nornweave.config.plan import PlanSettings
from nornweave.core.types import Domain

log = logging.getLogger(__name__)


class ChunkingSettings(FrozenSettings):
    """How documents of a domain are cut into chunks."""

    strategy: Literal["SYNTAX_AWARE", "HIERARCHICAL_SECTIONS", "MESSAGE_BOUNDARY", "RECURSIVE_CHARACTER"]
    max_chunk_tokens: int = Field(512, ge=16, le=8192)
    overlap_tokens: int = Field(0, ge=0, le=0, description="chunks tile their document; overlap is not supported")
    language_grammars: tuple[str, ...] = ()


class EmbeddingSettings(FrozenSettings):
    """Which encoder a domain uses."""

    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    dimensions: int | None = Field(384, ge=1, le=8192)
    batch_size: int = Field(32, ge=1, le=4096)
    device: Literal["cpu", "cuda"] = "cpu"
    precision: Literal["auto", "float", "int8"] = "auto"

    @model_validator(mode="before")
    @classmethod
    def _forget_dimensions_of_another_model(cls, values: Any) -> Any:
        """Forget the default dimensions if another model is named without its own."""
        if isinstance(values, dict) and "model" in values and "dimensions" not in values:
            return {**values, "dimensions": None}
        return values


class HeuristicSettings(FrozenSettings):
    """The bonuses of ``ask/search/heuristics.py``; 0 turns a heuristic off."""

    symbol_match_bonus: float = Field(0, ge=0, le=1)
    path_match_bonus: float = Field(0, ge=0, le=1)
    heading_match_bonus: float = Field(0, ge=0, le=1)
    recency_bonus_max: float = Field(0, ge=0, le=1)
    recency_decay: Literal["linear", "exponential"] = "linear"
    recency_days: float = Field(90, ge=1, le=36_500)
    """Age at which nothing is left of a linear bonus, and a share of 1/e of an exponential one."""
    engagement_bonus_max: float = Field(0, ge=0, le=1)
    engagement_full_at: int = Field(10, ge=1, le=1_000_000)
    """Reactions that earn the whole bonus."""
    accepted_answer_bonus: float = Field(0, ge=0, le=1)
    citation_bonus_max: float = Field(0, ge=0, le=1)
    citation_bonus_step: float = Field(0.02, ge=0, le=1)
    """Bonus per power of ten of citations."""


class RerankingWeights(FrozenSettings):
    """How much relevance and each kind of bonus count; a kind without a weight of its own takes ``heuristic``."""

    model: float = Field(0.7, gt=0, le=1)
    """Of the cross-encoder's score, or of the combined score that takes its place."""
    heuristic: float = Field(0.3, ge=0, le=1)
    symbol: float | None = Field(None, ge=0, le=1)
    path: float | None = Field(None, ge=0, le=1)
    heading: float | None = Field(None, ge=0, le=1)
    recency: float | None = Field(None, ge=0, le=1)
    engagement: float | None = Field(None, ge=0, le=1)
    authority: float | None = Field(None, ge=0, le=1)


class RerankingSettings(FrozenSettings):
    """How candidates are reranked; used by recall."""

    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] | None = None
    """A cross-encoder's name or folder; null reranks without."""
    device: Literal["cpu", "cuda"] = "cpu"
    """Where the cross-encoder runs."""
    overfetch_factor: int = Field(3, ge=1, le=20)
    heuristics: HeuristicSettings = HeuristicSettings()
    weights: RerankingWeights = RerankingWeights()


class KeepSettings(FrozenSettings):
    """Which older generations stay: the last of each of the newest days, weeks and months that have one."""

    days: int = Field(0, ge=0, le=3_660)
    weeks: int = Field(0, ge=0, le=520)
    months: int = Field(0, ge=0, le=120)


class StorageSettings(FrozenSettings):
    """How a domain's generations are built, and which stay."""

    vector_index: Literal["auto", "exact", "hnsw"] = "auto"
    hnsw_m: int = Field(16, ge=2, le=128)
    hnsw_ef_construction: int = Field(128, ge=8, le=2048)
    hnsw_ef_search: int = Field(512, ge=8, le=4096)
    keep_generations: int = Field(3, ge=1, le=100)
    keep: KeepSettings | None = None
    """What stays beside the newest ``keep_generations``; nothing without."""

    @model_validator(mode="before")
    @classmethod
    def _leave_shards_out(cls, value: object) -> object:
        """Ignore a setting of earlier versions, which a publisher that is not upgraded may still pass on."""
        if isinstance(value, dict) and "shards" in value:
            log.warning("storage: 'shards' is ignored: every domain is stored in segments now; remove the key")
            return {key: each for key, each in value.items() if key != "shards"}
        return value


class EvaluationSettings(FrozenSettings):
    """How a domain's quality is measured, and when a new generation is held back."""

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
    floors: Mapping[
        Literal["Recall@10", "RR@10", "nDCG@10", "P@5", "Success@1"], Annotated[float, Field(ge=0, le=1)]
    ] = {}
    """What the answers must reach on every judged set made by people, whatever is published."""
    min_score: float | None = Field(None, ge=0, le=1)
    """Below this a best item is taken to say that there is no answer; judged by the sets' unanswerable questions."""


class DomainSettings(FrozenSettings):
    """The settings of one domain: its domain file with the overrides of ``nornweave.yaml``."""

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
