"""Settings: ``nornweave.yaml``, the domain files beside the package and the environment, read once, at the edges.

Precedence, highest first: environment, ``nornweave.yaml`` (``domains:``), ``config/domains/<domain>.yaml``. Relative
paths are relative to the file that names them. Every error names the key, the value and what is allowed.
"""

from nornweave.config.domain import (
    USUAL_FILTERS,
    Bm25Settings,
    BonusSetting,
    ChunkingSettings,
    DomainSettings,
    EmbeddingSettings,
    EvaluationSettings,
    FieldWeights,
    FilterSettings,
    PlanSettings,
    RerankingSettings,
    RerankingWeights,
    SourceWeights,
    StorageSettings,
)
from nornweave.config.load import DOMAIN_FILES, MAX_CONFIG_BYTES, read_settings
from nornweave.config.sources import SourceSettings
from nornweave.config.workspace import AnswersSettings, FeedbackSettings, PublishSettings, Settings

__all__ = [
    "DOMAIN_FILES",
    "MAX_CONFIG_BYTES",
    "USUAL_FILTERS",
    "AnswersSettings",
    "Bm25Settings",
    "BonusSetting",
    "ChunkingSettings",
    "DomainSettings",
    "EmbeddingSettings",
    "EvaluationSettings",
    "FeedbackSettings",
    "FieldWeights",
    "FilterSettings",
    "PlanSettings",
    "PublishSettings",
    "RerankingSettings",
    "RerankingWeights",
    "Settings",
    "SourceSettings",
    "SourceWeights",
    "StorageSettings",
    "read_settings",
]
