"""Settings: ``nornweave.yaml``, the domain files beside the package and the environment, read once, at the edges.

Precedence, highest first: environment, ``nornweave.yaml`` (``domains:``), ``settings/domains/<domain>.yaml``. Relative
paths are relative to the file that names them. Every error names the key, the value and what is allowed.
"""

from nornweave.settings.domain import (
    ChunkingSettings,
    DomainSettings,
    EmbeddingSettings,
    EvaluationSettings,
    HeuristicSettings,
    RerankingSettings,
    RerankingWeights,
    StorageSettings,
)
from nornweave.settings.filters import USUAL_FILTERS, FilterSettings
from nornweave.settings.load import DOMAIN_FILES, MAX_CONFIG_BYTES, load_settings
from nornweave.settings.plan import Bm25Settings, FieldWeights, PlanSettings, SourceWeights
from nornweave.settings.publish import PublishSettings
from nornweave.settings.sources import ALLOWED_TYPES, SourceSettings, SourceType
from nornweave.settings.workspace import AnswersSettings, FeedbackSettings, Settings

__all__ = [
    "ALLOWED_TYPES",
    "DOMAIN_FILES",
    "MAX_CONFIG_BYTES",
    "USUAL_FILTERS",
    "AnswersSettings",
    "Bm25Settings",
    "ChunkingSettings",
    "DomainSettings",
    "EmbeddingSettings",
    "EvaluationSettings",
    "FeedbackSettings",
    "FieldWeights",
    "FilterSettings",
    "HeuristicSettings",
    "PlanSettings",
    "PublishSettings",
    "RerankingSettings",
    "RerankingWeights",
    "Settings",
    "SourceSettings",
    "SourceType",
    "SourceWeights",
    "StorageSettings",
    "load_settings",
]
