"""Settings of fusion and synthesis: the environment variables' names, in lower case under ``fusion:``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Weight = Annotated[float | None, Field(ge=0, le=1)]
Model = Annotated[str, StringConstraints(strip_whitespace=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWeights:
    """The weight of each ranking signal."""

    score: float
    corroboration: float
    recency: float
    domain: float
    length: float


# For scores that min-max has stretched over [0, 1].
STRETCHED_WEIGHTS = RankWeights(score=0.50, corroboration=0.15, recency=0.15, domain=0.10, length=0.10)
# For calibrated scores: a relevant item has .4 to .6 and the next best a few hundredths less. The other signals
# may break near ties, not overrule relevance (docs/fusion.md has the ablation).
CALIBRATED_WEIGHTS = RankWeights(score=0.93, corroboration=0.03, recency=0.01, domain=0.02, length=0.01)


class FusionSettings(BaseModel):
    """How answers are fused. An environment variable with a field's name in capitals overrides the field.

    The kind of score normalisation decides whether a weight that is not set comes from ``STRETCHED_WEIGHTS`` or
    ``CALIBRATED_WEIGHTS``. A weight that is set is used with any kind.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    fusion_max_sources: int = Field(4, ge=1, le=4)
    """How many domains a question is sent to that names none."""
    fusion_max_chars_per_source: int = Field(1500, ge=100, le=1_000_000)
    """Characters of one domain's section in ``format: text``."""
    fusion_timeout_seconds: float = Field(5, gt=0, le=600)
    """How long a question may take that sets no ``timeout_ms`` of its own, over HTTP and on the command line."""
    normalization: Literal["auto", "calibrated", "minmax"] = "auto"
    dedup_similarity_threshold: float = Field(0.85, ge=0.5, le=1)
    conflict_strategy: Literal["RECENCY", "SOURCE_AUTHORITY", "CONFIDENCE", "FLAG", "RECENCY_THEN_FLAG"] = "RECENCY"
    """Of questions that name none."""
    conflict_demotion_penalty: float = Field(0.30, ge=0, le=1)
    conflict_loser_policy: Literal["demote", "drop"] = "demote"
    recency_tie_window_hours: float = Field(24, ge=0, le=87_600)
    rank_weight_score: Weight = None
    rank_weight_corroboration: Weight = None
    rank_weight_recency: Weight = None
    rank_weight_domain: Weight = None
    rank_weight_length: Weight = None
    synthesis_model: Model = ""
    """Empty, no model is ever asked: nothing is sent anywhere unless a person names one."""
    synthesis_temperature: float = Field(0.3, ge=0, le=2)
    synthesis_max_tokens: int = Field(1024, ge=1, le=32_768)
    synthesis_timeout_ms: int = Field(5000, ge=1, le=600_000)
    """For the model and its fallback together."""
    synthesis_top_k: int = Field(10, ge=1, le=100)
    synthesis_fallback: Model = ""
    """Asked when the first model fails; empty for none."""

    @property
    def timeout_ms(self) -> int:
        """Return ``fusion_timeout_seconds`` in milliseconds, at least 1."""
        return max(1, round(self.fusion_timeout_seconds * 1000))

    @property
    def names_a_model(self) -> bool:
        """Tell whether a model for writing answers is configured."""
        return bool(self.synthesis_model or self.synthesis_fallback)

    def rank_weights(self, normalization: str) -> RankWeights:
        """Return the ranking weights for a kind of score normalisation, such as ``minmax``."""
        defaults = STRETCHED_WEIGHTS if normalization == "minmax" else CALIBRATED_WEIGHTS
        stated = {name: getattr(self, f"rank_weight_{name}") for name in RankWeights.__slots__}
        return RankWeights(**{name: getattr(defaults, name) if value is None else value
                              for name, value in stated.items()})  # fmt: skip


def with_environment(stated: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of ``fusion:``. A variable such as ``FUSION_MAX_SOURCES`` overrides ``fusion_max_sources``."""
    stated_there = {name: environment.get(name.upper(), "").strip() for name in FusionSettings.model_fields}
    return {**stated, **{name: value for name, value in stated_there.items() if value and name != "normalization"}}
