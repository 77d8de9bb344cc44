"""Settings of the whole workspace: everything in ``nornweave.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field, field_validator

from nornweave.config.access import AccessSettings, AgentsSettings, MembershipSettings, SlackAppSettings
from nornweave.config.addresses import is_web_address, postgresql_url
from nornweave.config.base import FrozenSettings
from nornweave.config.domain import DomainSettings
from nornweave.config.fusion import FusionSettings
from nornweave.config.publish import PublishSettings, WorkersSettings
from nornweave.config.sources import SourceSettings
from nornweave.core.access import RIGHTS, group_name
from nornweave.core.errors import ConfigError
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.membership import Memberships
from nornweave.core.types import Domain

INBOX_ID = "inbox"
"""The source of what was handed in; every domain has one."""


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
