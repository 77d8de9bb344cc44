"""Settings: ``nornweave.yaml``, the domain files beside the package and the environment, read once, at the edges.

Precedence, highest first: environment, ``nornweave.yaml`` (``domains:``), ``nornweave/domains/<domain>.yaml``. Relative
paths are relative to the file that names them. Every error names the key, the value and what is allowed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from nornweave.errors import ConfigError
from nornweave.fusion_settings import FusionSettings, with_environment
from nornweave.types import Domain

DOMAIN_FILES = Path(__file__).parent / "domains"
MAX_CONFIG_BYTES = 1_000_000

T = TypeVar("T", bound=BaseModel)


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceType(StrEnum):
    """The kinds of source of contract §2."""

    FILES = "files"
    GIT = "git"
    SLACK = "slack"
    GITHUB = "github"
    TRANSCRIPTS = "transcripts"
    MESSAGES = "messages"
    STACKEXCHANGE = "stackexchange"
    INBOX = "inbox"


# What a domain may be fed with. Conversations are messages, which plain files do not have.
ALLOWED_TYPES: Mapping[Domain, frozenset[SourceType]] = {
    Domain.CODE: frozenset({SourceType.FILES, SourceType.GIT, SourceType.INBOX}),
    Domain.DOCUMENTATION: frozenset({SourceType.FILES, SourceType.GIT, SourceType.INBOX}),
    Domain.CONVERSATIONS: frozenset(
        {SourceType.SLACK, SourceType.GITHUB, SourceType.TRANSCRIPTS, SourceType.MESSAGES, SourceType.INBOX}
    ),
    Domain.RESEARCH: frozenset({SourceType.FILES, SourceType.GIT, SourceType.STACKEXCHANGE, SourceType.INBOX}),
}


class SourceSettings(_Settings):
    """One entry of ``sources:``."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$", max_length=64)]
    domain: Domain
    type: SourceType
    path: Path | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    metadata: Path | None = None
    """A YAML or JSON file with dates, revisions and the like per path (``files`` only)."""
    ref: str = "HEAD"
    """What to read of a git repository."""
    repository: Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")] | None = None
    """``owner/name``: read GitHub through its API instead of a dump; the token comes from ``GITHUB_TOKEN``."""
    api_url: str = "https://api.github.com"

    @model_validator(mode="after")
    def _is_complete(self) -> SourceSettings:
        if self.type not in ALLOWED_TYPES[self.domain]:
            allowed = ", ".join(sorted(ALLOWED_TYPES[self.domain]))
            message = f"type {self.type.value!r} does not fit domain {self.domain.value!r}; allowed: {allowed}"
            raise ValueError(message)
        if self.repository and self.type is not SourceType.GITHUB:
            message = f"key 'repository' belongs to type github, not {self.type.value}"
            raise ValueError(message)
        if self.path is None and not self.repository:
            message = "key 'path' is missing"
            raise ValueError(message)
        return self


class ChunkingSettings(_Settings):
    """How documents of a domain are cut (AGENTS, "Chunking Strategy")."""

    strategy: Literal["SYNTAX_AWARE", "HIERARCHICAL_SECTIONS", "MESSAGE_BOUNDARY", "RECURSIVE_CHARACTER"]
    max_chunk_tokens: int = Field(512, ge=16, le=8192)
    overlap_tokens: int = Field(0, ge=0, le=0, description="chunks tile their document; overlap is not supported")
    language_grammars: tuple[str, ...] = ()


class EmbeddingSettings(_Settings):
    """Which encoder a domain uses."""

    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    dimensions: int | None = Field(384, ge=1, le=8192)
    batch_size: int = Field(32, ge=1, le=4096)
    device: Literal["cpu", "cuda"] = "cpu"

    @model_validator(mode="before")
    @classmethod
    def _forget_dimensions_of_another_model(cls, values: Any) -> Any:
        """A model named without its dimensions takes whatever the model has: nobody should have to look them up."""
        if isinstance(values, dict) and "model" in values and "dimensions" not in values:
            return {**values, "dimensions": None}
        return values


class HeuristicSettings(_Settings):
    """What a candidate gains for what is known about it; 0 turns a heuristic off (AGENTS, "Domain heuristics")."""

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


class RerankingWeights(_Settings):
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


class RerankingSettings(_Settings):
    """How candidates are reranked; used by recall."""

    model: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] | None = None
    """A cross-encoder's name or folder; null reranks without."""
    overfetch_factor: int = Field(3, ge=1, le=20)
    heuristics: HeuristicSettings = HeuristicSettings()
    weights: RerankingWeights = RerankingWeights()


class StorageSettings(_Settings):
    """How a domain's generations are built."""

    vector_index: Literal["auto", "exact", "hnsw"] = "auto"
    hnsw_m: int = Field(16, ge=2, le=128)
    hnsw_ef_construction: int = Field(128, ge=8, le=2048)
    hnsw_ef_search: int = Field(512, ge=8, le=4096)
    keep_generations: int = Field(3, ge=1, le=100)


class FilterSettings(_Settings):
    """One filter that a domain declares; ``column`` is what it looks at, never SQL."""

    key: str
    type: Literal["string", "datetime", "list", "date_range"]
    column: str


class SourceWeights(_Settings):
    """What each retrieval source counts for; only their proportion matters."""

    dense: float = Field(0.4, ge=0, le=1)
    sparse: float = Field(0.4, ge=0, le=1)
    fulltext: float = Field(0.15, ge=0, le=1)
    structured: float = Field(0.05, ge=0, le=1)

    @model_validator(mode="after")
    def _count_for_something(self) -> SourceWeights:
        if not self.dense + self.sparse + self.fulltext + self.structured:
            message = "all weights are 0; at least one retrieval source must count"
            raise ValueError(message)
        return self


class FieldWeights(_Settings):
    """What an occurrence of a term counts for in BM25, by where it stands (``types.FIELDS``)."""

    path: float = Field(1, ge=0, le=10)
    title: float = Field(1, ge=0, le=10)
    """What the document and the chunk are called, the number of a thread, the language of code."""
    section: float = Field(1, ge=0, le=10)
    content: float = Field(1, ge=0, le=10)

    @model_validator(mode="after")
    def _count_for_something(self) -> FieldWeights:
        if not any(self.values):
            message = "all fields count 0; at least one must count"
            raise ValueError(message)
        return self

    @property
    def values(self) -> tuple[float, ...]:
        """Return the weights in the order of ``types.FIELDS``."""
        return (self.path, self.title, self.section, self.content)


class PlanSettings(_Settings):
    """How a domain answers: what evaluations tune (docs/recall.md has the measurements)."""

    combine: Literal["convex", "rrf"] = "convex"
    weights: SourceWeights = SourceWeights()
    literal_weights: SourceWeights = SourceWeights(dense=0.2, sparse=0.3, fulltext=0.35, structured=0.15)
    """For queries that quote: an identifier, a path, an error message, words in quotation marks."""
    fields: FieldWeights = FieldWeights()
    """For BM25."""
    document_share: float = Field(0.1, ge=0, le=1)
    """Share of a term's BM25 weight that a chunk takes from where its document says it best."""
    function_words: float = Field(0.3, ge=0, le=1)
    """What "how", "the" and the like count for beside other terms of the same rarity."""
    expand: bool = False
    """Whether ``expand: auto`` may add variants of the query besides acronyms, which it always may."""
    rerank: bool = False
    """Whether ``rerank: auto`` uses the domain's cross-encoder, which is looked for at start then."""
    heuristics: bool = False
    """Whether the domain's heuristics reorder without a cross-encoder."""


class EvaluationSettings(_Settings):
    """How a domain's quality is measured, and when a new generation is held back."""

    judgments: tuple[Path, ...] = ()
    """Folders of judged sets (contract §3, ``eval``), relative to the file that names them."""
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


class AnswersSettings(_Settings):
    """How the answers of all domains together are measured."""

    judgments: tuple[Path, ...] = ()
    """Folders of sets that are judged across domains, relative to the file that names them."""


class FeedbackSettings(_Settings):
    """What is kept of questions, for ``POST /feedback``."""

    keep_queries: bool = True
    """Remember what was asked and shown for 30 days, so that it can be judged; without, no answer can be."""


class DomainSettings(_Settings):
    """One domain file (AGENTS, "domain.yaml schema"), overrides applied."""

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


class Settings(_Settings):
    """Everything ``nornweave.yaml`` says, complete."""

    data_dir: Path
    sources: tuple[SourceSettings, ...]
    domains: Mapping[Domain, DomainSettings]
    webhook: str | None
    """Where each publication's event is posted."""
    file: Path
    fusion: FusionSettings = FusionSettings()
    feedback: FeedbackSettings = FeedbackSettings()
    evaluation: AnswersSettings = AnswersSettings()

    def sources_of(self, domain: Domain) -> tuple[SourceSettings, ...]:
        """Return the domain's sources in the order of the file."""
        return tuple(source for source in self.sources if source.domain is domain)

    def inbox(self, domain: Domain) -> Path:
        """Return the folder of documents handed in for ``domain``; every domain has one, nobody needs to name it."""
        return self.data_dir / "inbox" / domain.value

    @property
    def served_domains(self) -> tuple[Domain, ...]:
        """Return the domains with a source or an inbox, in the order of the enumeration; all four without any."""
        named = {source.domain for source in self.sources}
        return tuple(domain for domain in Domain if domain in named or self.inbox(domain).is_dir()) or tuple(Domain)


class _File(_Settings):
    """What may stand in ``nornweave.yaml``."""

    data_dir: Path = Path("var")
    sources: tuple[SourceSettings, ...] = ()
    domains: Mapping[Domain, dict[str, Any]] = {}
    webhook: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+")] | None = None
    fusion: dict[str, Any] = {}
    feedback: FeedbackSettings = FeedbackSettings()
    evaluation: AnswersSettings = AnswersSettings()


def load_settings(file: Path, environment: Mapping[str, str] | None = None) -> Settings:
    """Read ``nornweave.yaml`` and what it refers to.

    Args:
        file: the configuration file.
        environment: ``os.environ`` unless given.

    Raises:
        ConfigError: the file is missing or broken; a key is unknown, missing or of the wrong type; ids repeat.
    """
    environment = os.environ if environment is None else environment
    raw = _read_yaml(file)
    parsed = _validate(_File, raw, file)
    ids = [source.id for source in parsed.sources]
    if repeated := sorted({name for name in ids if ids.count(name) > 1}):
        raise ConfigError(f"{file}: sources: id {repeated[0]!r} is used twice; every source needs its own")
    base = file.resolve().parent
    return Settings(
        data_dir=_below(base, parsed.data_dir),
        sources=tuple(_with_absolute_paths(source, base) for source in parsed.sources),
        domains={domain: _load_domain(domain, parsed.domains.get(domain, {}), file, environment) for domain in Domain},
        webhook=parsed.webhook,
        file=file.resolve(),
        feedback=parsed.feedback,
        evaluation=AnswersSettings(judgments=tuple(_below(base, one) for one in parsed.evaluation.judgments)),
        fusion=_validate(FusionSettings, with_environment(parsed.fusion, environment), file, "fusion"),
    )


def _below(base: Path, path: Path) -> Path:
    return Path(os.path.normpath(base / path.expanduser()))


def _with_absolute_paths(source: SourceSettings, base: Path) -> SourceSettings:
    paths = {key: _below(base, path) for key in ("path", "metadata") if (path := getattr(source, key)) is not None}
    return source.model_copy(update=paths)


def _load_domain(
    domain: Domain, overrides: Mapping[str, Any], file: Path, environment: Mapping[str, str]
) -> DomainSettings:
    defaults = _read_yaml(DOMAIN_FILES / f"{domain.value}.yaml")
    for key in ("domain_id", "filters"):
        if key in overrides and overrides[key] != defaults.get(key):
            raise ConfigError(f"{file}: domains.{domain.value}.{key}: {overrides[key]!r} may not be overridden")
    merged = _merge(defaults, overrides)
    if factor := environment.get("OVERFETCH_FACTOR"):
        merged = _merge(merged, {"reranking": {"overfetch_factor": factor}})
    if device := environment.get("EMBEDDING_DEVICE"):
        merged = _merge(merged, {"embedding": {"device": device}}, keep_model=True)
    domain_settings = _validate(DomainSettings, merged, file, f"domains.{domain.value}")
    evaluation = domain_settings.evaluation
    folders = tuple(_below(file.resolve().parent, folder) for folder in evaluation.judgments)
    return domain_settings.model_copy(update={"evaluation": evaluation.model_copy(update={"judgments": folders})})


def _merge(defaults: Mapping[str, Any], overrides: Mapping[str, Any], *, keep_model: bool = False) -> dict[str, Any]:
    merged = dict(defaults)
    for key, value in overrides.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            base = dict(merged[key])
            if key == "embedding" and not keep_model and value.get("model", base.get("model")) != base.get("model"):
                base.pop("dimensions", None)  # they were another model's
            merged[key] = _merge(base, value, keep_model=keep_model)
        else:
            merged[key] = value
    return merged


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > MAX_CONFIG_BYTES:
            raise ConfigError(f"{file}: larger than {MAX_CONFIG_BYTES} bytes; this is no configuration file")
        loaded = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(
            f"{file}: no such file; write one (README, 'Your own sources') or name it with --config"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{file}: not valid YAML: {error}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ConfigError(f"{file}: expected a mapping of keys at the top, found {type(loaded).__name__}")
    return loaded


def _validate(model: type[T], values: Mapping[str, Any], file: Path, prefix: str = "") -> T:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines = [_explain(dict(problem), model, prefix) for problem in error.errors()]
        raise ConfigError("\n".join(f"{file}: {line}" for line in lines)) from error


def _explain(problem: Mapping[str, Any], model: type[BaseModel], prefix: str) -> str:
    """Say one pydantic problem as key, value, what is allowed."""
    location = [part for part in problem["loc"] if part != "[key]"]
    key = ".".join(str(part) for part in ([prefix] if prefix else []) + location) or "(top level)"
    found, kind = problem["input"], problem["type"]
    if kind == "extra_forbidden":
        allowed = ", ".join(sorted(_fields_at(model, location[:-1])))
        return f"unknown key {key!r} (value {found!r}); allowed here: {allowed}"
    if kind == "missing":
        return f"key {key!r} is missing"
    if kind == "value_error":
        return f"{key}: {problem['msg'].removeprefix('Value error, ')}"
    return f"{key}: {problem['msg']}, found {found!r}"


def _fields_at(model: type[BaseModel], location: list[Any]) -> set[str]:
    """Return the keys that are allowed at ``location`` inside ``model``."""
    current: type[BaseModel] = model
    for part in location:
        field = current.model_fields.get(str(part)) if isinstance(part, str) else None
        annotation = field.annotation if field else None
        for candidate in (annotation, *getattr(annotation, "__args__", ())):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                current = candidate
                break
    return set(current.model_fields)
