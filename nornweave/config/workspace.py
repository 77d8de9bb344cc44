"""Settings of the whole workspace: everything in ``nornweave.yaml``, with fusion, synthesis and object storage.

Settings of fusion and synthesis are also environment variables, whose names are theirs in capitals. Object storage is
where generations are published, and what workers share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from nornweave.config.access import AccessSettings, AgentsSettings, MembershipSettings, SlackAppSettings
from nornweave.config.base import FrozenSettings, Text, is_web_address, postgresql_url
from nornweave.config.domain import DomainSettings
from nornweave.config.sources import SourceSettings
from nornweave.core.access import RIGHTS, group_name
from nornweave.core.errors import ConfigError
from nornweave.core.files.paths import OwnFiles
from nornweave.core.membership import Memberships
from nornweave.core.signatures import public_key
from nornweave.core.types import Domain

Weight = Annotated[float | None, Field(ge=0, le=1)]
Model = Annotated[str, StringConstraints(strip_whitespace=True)]

SCHEMES = ("s3", "gs", "az", "file")

INBOX_ID = "inbox"
"""The source of what was handed in; every domain has one."""


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


def checked_store(text: str) -> str:
    """Return the address of an object store without a slash at its end.

    Raises:
        ValueError: the address is of another kind, or holds a password, a query or a relative path.
    """
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"expected an address of {', '.join(SCHEMES)}, such as s3://bucket/prefix")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("holds more than bucket and prefix; credentials come from the environment alone")
    if parts.scheme == "file":
        if parts.netloc or not Path(parts.path).is_absolute() or ".." in Path(parts.path).parts:
            raise ValueError("expected an absolute path, such as file:///srv/nornweave")
    elif not parts.hostname:
        raise ValueError("names no bucket; expected s3://bucket/prefix")
    return text.rstrip("/")


def _checked_endpoint(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password:
        raise ValueError("expected an address without a password, such as https://minio.example.org:9000")
    return text


StoreAddress = Annotated[Text, AfterValidator(checked_store)]


class ObjectStoreSettings(FrozenSettings):
    """A bucket or a folder. Credentials come only from the environment."""

    url: StoreAddress
    """``s3://``, ``gs://``, ``az://`` with bucket and prefix, or ``file://`` with a folder."""
    endpoint: Annotated[Text, AfterValidator(_checked_endpoint)] | None = None
    """Of a server that speaks S3; Amazon's unless given."""
    region: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,40}$")] | None = None
    allow_http: bool = False
    """Whether the endpoint may be reached without encryption."""


def _checked_key(text: str) -> str:
    public_key(text)
    return text


PublicKey = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^ed25519:[A-Za-z0-9+/=]{44}$"), AfterValidator(_checked_key)
]


class PublishSettings(ObjectStoreSettings):
    """The object store for published generations."""

    keep_generations: int = Field(3, ge=1, le=100)
    """How many generations of a domain stay in the store."""
    public_keys: tuple[PublicKey, ...] = ()
    """Of a replica: what the store says counts only if one of these keys has signed it; any counts without."""
    grace_hours: float = Field(24.0, ge=0, le=8_760)
    """What no kept generation needs is removed once it is so old; a reader that is slower starts over."""


BROKER_VARIABLE = "NORNWEAVE_BROKER_URL"
BROKER_PASSWORD_VARIABLE = "NORNWEAVE_BROKER_PASSWORD"  # noqa: S105 - a name
BROKERS = ("redis", "rediss", "amqp", "amqps")


def checked_broker(text: str) -> str:
    """Return the address of a broker. Refuse an address that holds a password.

    Raises:
        ValueError: the text is not a broker's address. The message does not repeat it, as it may hold a password.
    """
    parts = urlsplit(text)
    if parts.scheme not in BROKERS or not (parts.netloc or parts.path.strip("/")):
        example = "redis://broker.example.org:6379/0"
        raise ValueError(f"expected an address that begins with {', '.join(BROKERS)}, such as {example}")
    if parts.password:
        raise ValueError("holds a password; leave the address out here and set it in the environment")
    return text


class RunLauncherSettings(FrozenSettings):
    """Dagster's run launcher: ``run_launcher`` of its ``dagster.yaml``."""

    module: Text
    class_: Annotated[Text, Field(alias="class")]
    config: Mapping[str, Any] = Field(default_factory=dict)


class WorkersSettings(FrozenSettings):
    """Workers on other machines that encode texts and sync domains."""

    broker: Annotated[str, AfterValidator(checked_broker)] | None = None
    """Where batches queue: Redis or RabbitMQ. The environment's ``NORNWEAVE_BROKER_URL`` comes first."""
    objects: StoreAddress
    """Folder on object storage that all machines reach; its keys come from the environment."""
    batch: int = Field(64, ge=1, le=1_024)
    """Texts of one task: a second or two of work on one core."""
    patience_s: float = Field(60.0, ge=0.1, le=3_600)
    """A sync that gets no batch for so many seconds encodes itself."""
    leases: bool = False
    """Take a domain by a lease in PostgreSQL, and carry its files through ``objects``: runs on several machines."""
    run_launcher: RunLauncherSettings | None = None
    """Executes the runs that Dagster's schedule, sensors and UI start, in place of Dagster's machine; needs leases."""
    lease_s: float = Field(30.0, ge=1, le=3_600)
    """A worker that has not renewed its lease for so many seconds has lost the domain."""

    @model_validator(mode="after")
    def _leases_for_runs(self) -> WorkersSettings:
        if self.run_launcher and not self.leases:
            raise ValueError("runs on other machines need leases: true")
        return self

    @property
    def store(self) -> ObjectStoreSettings:
        """The settings of the object store ``objects``."""
        return ObjectStoreSettings(url=self.objects)


class AnswersSettings(FrozenSettings):
    """How answers over all domains are measured."""

    judgments: tuple[Path, ...] = ()
    """Folders of sets that are judged across domains, relative to the file that names them."""


class FeedbackSettings(FrozenSettings):
    """How questions are stored for ``POST /feedback``."""

    keep_queries: bool = True
    """Remember what was asked and shown for 30 days, so that it can be judged; without, no answer can be."""


class WorkspaceStorageSettings(FrozenSettings):
    """A PostgreSQL server for documents and generations."""

    url: str
    """Of the database, without a password: libpq takes that from ``PGPASSWORD`` or its password file."""
    schema_prefix: str = Field("nornweave", pattern=r"^[a-z][a-z0-9_]{0,40}$")
    """Each domain has a schema of its own, this and its name: ``nornweave_code``."""
    connections: int = Field(8, ge=2, le=1000)
    """The most that readers of one process have to the server, of all domains together."""

    @field_validator("url")
    @classmethod
    def _is_postgresql(cls, url: str) -> str:
        return postgresql_url(url)


class WorkspaceSettings(FrozenSettings):
    """The keys of ``nornweave.yaml`` that are the same in the file and in ``Settings``."""

    feedback: FeedbackSettings = FeedbackSettings()
    evaluation: AnswersSettings = AnswersSettings()
    storage: WorkspaceStorageSettings | None = None
    """The PostgreSQL server of all domains; without, each is stored in files below ``data_dir``."""
    access: AccessSettings | None = None
    """Who may ask, and which groups they are in; without, nobody is in a group."""
    agents: AgentsSettings | None = None
    """Agents on other machines that may join; without, none can."""
    publish: PublishSettings | None = None
    """Where published generations are copied to; nowhere without."""
    replica_of: str | None = None
    """The object store that this workspace is a copy of; it has no sources then and takes no documents."""
    workers: WorkersSettings | None = None
    """Workers on other machines; without, everything runs on this one."""
    slack: SlackAppSettings | None = None
    """The Slack app; without, none can be run."""


class Settings(WorkspaceSettings):
    """All settings of ``nornweave.yaml``, with defaults filled in."""

    data_dir: Path
    sources: tuple[SourceSettings, ...]
    domains: Mapping[Domain, DomainSettings]
    webhook: str | None
    """Where each publication's event is posted."""
    file: Path
    fusion: FusionSettings = FusionSettings()

    @property
    def own_files(self) -> OwnFiles:
        """Return NornWeave's own files, which no source may read."""
        oidc = self.access.oidc if self.access else None
        keys = Path(oidc.jwks) if oidc and oidc.jwks and not is_web_address(oidc.jwks) else None
        members = self.access.membership.file if self.access else None
        named = (self.file, self.access.tokens if self.access else None, members, keys)
        return OwnFiles(self.data_dir, tuple(each for each in named if each is not None), self.file.parent)

    def sources_of(self, domain: Domain) -> tuple[SourceSettings, ...]:
        """Return the domain's sources in the order of the file."""
        return tuple(source for source in self.sources if source.domain is domain)

    def restricted_sources(self, domain: Domain) -> Mapping[str, tuple[str, ...]]:
        """Return source id → the groups that may see its documents. Sources that everybody may see are left out.

        ``RIGHTS`` among the groups means that the source itself decides.
        """
        return {source.id: source.restricted_to for source in self.sources_of(domain) if source.restricted_to}

    @property
    def memberships(self) -> Memberships | None:
        """Return the memberships that decide about access to documents. Their files are not read yet.

        Returns:
            ``None`` if no source decides who may read and the operator has no file of members.
        """
        stated = self.access.membership if self.access else MembershipSettings()
        sources = [source.id for source in self.sources if RIGHTS in source.restricted_to]
        if not sources and stated.file is None:
            return None
        return Memberships(self.data_dir, sources, file=stated.file, max_age_s=stated.max_age_hours * 3600)

    @property
    def principals_notice(self) -> str:
        """Return a notice that names principals in the configuration that no source has; empty if there are none."""
        named = {name for source in self.sources for name in source.access}
        named |= {*self.access.operators} if self.access else set()
        named |= {name for each in (self.agents.allow if self.agents else ()) for name in each.groups}
        unknown = (self.memberships or Memberships(self.data_dir, ())).unknown(map(group_name, named))
        more = f" and {len(unknown) - 10:,} more" if len(unknown) > 10 else ""
        return f"no source has {', '.join(unknown[:10])}{more}, which the configuration names" if unknown else ""

    def inbox(self, domain: Domain) -> Path:
        """Return the inbox folder of ``domain``. Every domain has one."""
        return self.data_dir / "inbox" / domain.value

    def domains_of(self, sources: Sequence[str], domains: Sequence[Domain] | None) -> tuple[Domain, ...]:
        """Return the domains to work on: the named domains, else those of the named sources, else all served domains.

        Raises:
            ConfigError: a named source does not exist, or is in none of the named domains.
        """
        there = [source for source in self.sources if not domains or source.domain in domains]
        for name in sources:
            if name != INBOX_ID and name not in {source.id for source in there}:
                allowed = ", ".join(sorted({source.id for source in there} | {INBOX_ID}))
                raise ConfigError(f"no source {name!r}; there are: {allowed}")
        if domains or not sources or INBOX_ID in sources:
            return tuple(domains or self.served_domains)
        return tuple(dict.fromkeys(source.domain for source in there if source.id in sources))

    @property
    def served_domains(self) -> tuple[Domain, ...]:
        """Return the domains that have a source or an inbox, in the order of ``Domain``; all domains if none has."""
        named = {source.domain for source in self.sources}
        return tuple(domain for domain in Domain if domain in named or self.inbox(domain).is_dir()) or tuple(Domain)
