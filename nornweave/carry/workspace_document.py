"""Everything besides files that a replica needs to answer: settings of domains and fusion, the conflict ledger.

No secret is in it, nor who is in which group: that is said where a replica runs. Which groups may see a source is, and
whom the sources that say themselves who may read let in.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from nornweave.carry.ledger_file import ledger_file
from nornweave.carry.object_store import ObjectStore
from nornweave.carry.publication import OtherFormatError, PublisherId, SignedDocument, as_json, is_signed, read_json
from nornweave.carry.standing import Published, read_published, record_file, write_published
from nornweave.carry.wiring import domain_folder
from nornweave.config import USUAL_FILTERS, DomainSettings, Settings
from nornweave.config.sources import SourceSettings
from nornweave.connect.connectors import bound_of
from nornweave.core.access import RIGHTS
from nornweave.core.errors import MissingObjectError, PublicationError, PublisherConflictError, StoreError
from nornweave.core.files.writing import write_whole
from nornweave.core.membership import MembershipTable, membership_file, read_table, write_table
from nornweave.core.signatures import signer_of
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Domain, present
from nornweave.index.outcomes import Verified, read_verified, write_verified

log = logging.getLogger(__name__)

KEY = "WORKSPACE"
_RECORD = "workspace"
# Keys of a domain that only ingestion and evaluation use. They may hold paths of this machine.
_NOT_SENT = {"evaluation", "filters", "domain_id"}
OWN_OF_FUSION = {"synthesis_model", "synthesis_fallback"}
"""Where questions and passages are sent: each machine says it itself."""


class WorkspaceDocument(SignedDocument):
    """The publisher's settings and records for its replicas.

    Attributes:
        configuration: ``domains``, ``fusion`` and ``sources`` in the form of a configuration file. Sources have only
            ids and groups.
        served: the domains that have a source or an inbox.
        ledger: the content of the conflict ledger's file.
        verified: domain → when its sources confirmed the generation that is in the store.
        membership: source id → its table of members.
    """

    publisher: PublisherId
    published_at: str
    configuration: dict[str, Any]
    served: tuple[Domain, ...]
    ledger: str | None = None
    verified: Mapping[Domain, Verified] = Field(default_factory=dict)
    membership: Mapping[str, MembershipTable] = Field(default_factory=dict)

    @property
    def sources(self) -> frozenset[str]:
        """The ids of the publisher's sources."""
        return frozenset(str(source["id"]) for source in self.configuration.get("sources", ()))


def publish_workspace(
    store: ObjectStore, settings: Settings, publisher: str, *, take_over: bool = False
) -> WorkspaceDocument:
    """Update the workspace document in the store, and return it. If it would not change, it is not written.

    With ``take_over``, replace the document of another publisher.

    Raises:
        PublicationError: the store cannot be reached.
        PublisherConflictError: the store has the document of another publisher, and ``take_over`` is not set.
    """
    document = workspace_document(settings, publisher)
    try:
        stored = store.read(KEY)
    except MissingObjectError:
        stored = None
    record = record_file(settings.data_dir, _RECORD)
    if there := _read_or_none(stored.content, f"{store.url}/{KEY}") if stored else None:
        known = read_published(record)
        if there.publisher != publisher and known and known.url == store.url and not take_over:
            raise PublisherConflictError(
                f"{store.url}/{KEY}: is another publisher's ({there.publisher[:8]}); `nornweave publish --take-over` "
                "replaces it"
            )
        # The store has settings that this machine does not know.
        verified = {**there.verified, **document.verified}
        tables = (*document.membership.items(), *there.membership.items())
        membership = {name: table for name, table in sorted(tables, key=_asked_at) if name in document.sources}
        ledger = document.ledger or there.ledger
        document = document.model_copy(update={"verified": verified, "ledger": ledger, "membership": membership})
        if is_signed(there, settings.data_dir) and _says_the_same(there, document):
            return there
    signed = signer_of(settings.data_dir).signed(document.model_dump(mode="json"))
    store.replace(KEY, as_json(signed), stored.tag if stored else None)
    write_published(record, Published(url=store.url, at=document.published_at))
    return document


def workspace_document(settings: Settings, publisher: str) -> WorkspaceDocument:
    """Return the workspace document as of now."""
    sources = [
        {"id": source.id, "domain": source.domain.value, "access": list(source.restricted_to)}
        for source in settings.sources
    ]
    domains = {domain.value: _sent(settings.domains[domain]) for domain in settings.served_domains}
    fusion = settings.fusion.model_dump(mode="json", exclude_unset=True, exclude=OWN_OF_FUSION)
    return WorkspaceDocument(
        publisher=publisher,
        published_at=utc_text(present(), "seconds"),
        configuration={"domains": domains, "fusion": fusion, "sources": sources},
        served=settings.served_domains,
        ledger=_text(ledger_file(settings)),
        verified={domain: sent for domain in settings.served_domains if (sent := _verified_in_store(settings, domain))},
        membership={source.id: table for source in settings.sources if (table := _membership(settings, source))},
    )


def _asked_at(named: tuple[str, MembershipTable]) -> float:
    return named[1].tried_at


def _membership(settings: Settings, source: SourceSettings) -> MembershipTable | None:
    file = membership_file(settings.data_dir, source.id)
    return _table_or_none(file) if RIGHTS in source.restricted_to else None


def _says_the_same(one: WorkspaceDocument, other: WorkspaceDocument) -> bool:
    without = {"published_at", "signed_by"}
    return one.model_dump(exclude=without) == other.model_dump(exclude=without)


def _sent(configured: DomainSettings) -> dict[str, Any]:
    declared = [
        {"key": each.key, "type": each.type, "from": list(each.origins)}
        for each in configured.filters
        if each.is_declared and each not in USUAL_FILTERS
    ]
    return {**configured.model_dump(mode="json", exclude=_NOT_SENT), **({"filters": declared} if declared else {})}


def _verified_in_store(settings: Settings, domain: Domain) -> Verified | None:
    """Return when sources confirmed the domain's copy in the store; ``None`` if that is unknown.

    Each source has its ``bound``, because replicas do not configure the source.
    """
    copied = read_published(record_file(settings.data_dir, domain.value))
    verified = read_verified(domain_folder(settings, domain))
    if copied is None or not copied.built_as or copied.built_as != verified.generation:
        return None
    bounds = {source.id: bound_of(source) for source in settings.sources_of(domain)}
    sources = {name: replace(source, bound=bounds.get(name)) for name, source in verified.sources.items()}
    return Verified(f"gen-{copied.number:06d}", sources)


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PublicationError(f"{file}: cannot be read: {error}") from error


def _read_or_none(content: bytes, where: str) -> WorkspaceDocument | None:
    try:
        return read_json(WorkspaceDocument, content, where)
    except OtherFormatError:
        raise
    except PublicationError:
        return None


def take_over_workspace(store: ObjectStore, settings: Settings) -> None:
    """Replace this machine's ledger, confirmations and members with those in the store's workspace document.

    Raises:
        PublicationError: the store cannot be reached, or the document is damaged.
        OSError: the records cannot be written.
    """
    with suppress(MissingObjectError):
        stored = store.read(KEY)
        assert stored is not None
        take_over(read_json(WorkspaceDocument, stored.content, f"{store.url}/{KEY}"), settings)


def replica_configuration(document: WorkspaceDocument, url: str, own: Mapping[str, Any]) -> str:
    """Return a replica's configuration file. Its sources only define access.

    Args:
        own: the replica's own settings: ``access``, and the models of ``fusion`` that receive questions. They do not
            come from the store, because others may write to it.
    """
    sources = [
        {"id": one["id"], "domain": one["domain"], "type": "inbox", "path": "nowhere", "access": one["access"]}
        for one in document.configuration.get("sources", [])
    ]
    domains = {
        name: {key: value for key, value in said.items() if key == "filters" or key not in _NOT_SENT}
        for name, said in document.configuration.get("domains", {}).items()
    }
    sent = {key: value for key, value in document.configuration.get("fusion", {}).items() if key not in OWN_OF_FUSION}
    fusion = {**sent, **own.get("fusion", {})}
    configuration = {"data_dir": "var", "replica_of": url, "domains": domains, "fusion": fusion, "sources": sources}
    if access := own.get("access"):
        configuration["access"] = access
    return json.dumps(configuration, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def take_over(document: WorkspaceDocument, settings: Settings) -> None:
    """Store the document's ledger, confirmations and members of sources for a replica.

    Raises:
        OSError: they cannot be written to disk.
    """
    for domain in settings.served_domains:
        if verified := document.verified.get(domain):
            domain_folder(settings, domain).mkdir(parents=True, exist_ok=True)
            write_verified(domain_folder(settings, domain), verified)
    ledger, text = ledger_file(settings), document.ledger
    ledger.parent.mkdir(parents=True, exist_ok=True)
    if text is not None and (not ledger.exists() or ledger.read_text(encoding="utf-8") != text):
        write_whole(ledger, text)
    for source, table in document.membership.items():
        known = _table_or_none(file := membership_file(settings.data_dir, source))
        if known is None or known.tried_at < table.tried_at:
            write_table(file, table)


def _table_or_none(file: Path) -> MembershipTable | None:
    with suppress(StoreError):
        return read_table(file)
    return None
