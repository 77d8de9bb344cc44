"""What a publisher does after a sync and for ``nornweave publish``.

A generation is copied to the object store: the parts of its files, then the commit that names them.
``WORKSPACE`` is everything besides files that a replica needs to answer: settings of domains and fusion, the conflict
ledger. No secret is in it, nor who is in which group: that is said where a replica runs. Which groups may see a source
is, and whom the sources that say themselves who may read let in.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from nornweave.carry.ledger_file import ledger_file
from nornweave.carry.parts import Digests, Files, ObjectStore, parts_of, prefix_of, push, remove_unnamed
from nornweave.carry.publication import (
    OtherFormatError,
    Publication,
    Published,
    PublishedCommit,
    PublisherId,
    SignedDocument,
    as_json,
    is_signed,
    publisher_id,
    read_json,
    read_published,
    read_state,
    record_file,
    write_published,
)
from nornweave.carry.wiring import domain_folder, hold_domain, store_of
from nornweave.config import USUAL_FILTERS, DomainSettings, Settings
from nornweave.config.sources import SourceSettings
from nornweave.connect.connectors import bound_of
from nornweave.core.access import RIGHTS
from nornweave.core.errors import (
    ConfigError,
    MissingObjectError,
    NornWeaveError,
    PublicationError,
    PublisherConflictError,
    StoreError,
)
from nornweave.core.files.writing import write_whole
from nornweave.core.membership import MembershipTable, membership_file, read_table, write_table
from nornweave.core.signatures import signer_of
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Domain, GenerationId, present
from nornweave.index.generations.checksums import checksum_file
from nornweave.index.generations.kept import number_of
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.outcomes import Verified, read_verified, write_verified
from nornweave.index.searching.arrays import SUFFIX as ARRAYS

log = logging.getLogger(__name__)

WAIT_S = 60.0

KEY = "WORKSPACE"
_RECORD = "workspace"
# Keys of a domain that only ingestion and evaluation use. They may hold paths of this machine.
_NOT_SENT = {"evaluation", "filters", "domain_id"}
OWN_OF_FUSION = {"synthesis_model", "synthesis_fallback"}
"""Where questions and passages are sent: each machine says it itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """Copies a domain's published generation to the object store.

    Attributes:
        settings: the settings, which name the store.
        take_over: publish even if another publisher made the last commit.
        full: copy all files, for example after damage in the store.
    """

    settings: Settings
    store: ObjectStore
    publisher: str
    domain: Domain
    files: GenerationFiles
    take_over: bool
    full: bool

    def run(self, confirm: Callable[[], None]) -> Published | None:
        """Copy the generation if the store lacks it. Return the record of the store's copy.

        Args:
            confirm: raises ``LeaseLostError`` if another machine has taken over the domain.

        Returns:
            The record; ``None`` if this workspace has no published generation of the domain.

        Raises:
            PublicationError: the store cannot be reached, or files of the generation are gone.
            PublisherConflictError: another publisher has published the domain.
            LeaseLostError: another machine has taken over the domain.
        """
        generation = self.files.current()
        if generation is None:
            return None
        claim = Publication(self.store, self.domain.value, signer_of(self.settings.data_dir))
        state = claim.take()
        before = read_state(PublishedCommit, state, f"{self.store.url}: {self.domain.value}") if state else None
        confirm()  # a later holder that publishes first changes the tag
        known = read_last_copy(self.settings, self.domain)
        self._check_publisher(before, known)
        is_ours = before is not None and is_signed(before, self.settings.data_dir) and not self.full
        if before and is_ours and known and (known.built_as, known.commit) == (generation, before.commit):
            return known
        commit = self._commit(generation, before, claim.fence)
        if before and is_ours and _is_same(before, commit):
            return self._noted(before)  # published by another machine, or before a kill
        try:
            claim.commit(commit.model_dump(mode="json"))
        except PublisherConflictError as error:
            write_published(self._record, Published(url=self.store.url, lost=True))
            raise PublisherConflictError(
                f"{self.store.url}: another publisher published {self.domain.value} while {generation} was being "
                "copied; theirs counts. Stop one of the two, then run `nornweave publish --take-over`"
            ) from error
        published = self._noted(commit)
        remove_unnamed(self.store, prefix_of(self.domain.value), claim.fence, parts_of(commit.kept_files))
        return published

    def _check_publisher(self, before: PublishedCommit | None, known: Published | None) -> None:
        """Refuse to alternate with another publisher. A publisher that lost its records (new disk) may continue.

        ``before`` is the last commit in the store, and ``known`` the record of this publisher's last copy.
        """
        if before is None or before.publisher == self.publisher or self.take_over:
            return
        if known and (known.at or known.lost):
            raise PublisherConflictError(
                f"{self.store.url}: another publisher ({before.publisher[:8]}) published {self.domain.value} "
                f"{before.generation} at {before.published_at}; two publishers of one address take turns in "
                "hiding each other's work: stop one, then run `nornweave publish --take-over` with the other"
            )
        log.warning("%s: continues after %s of another publisher", self.domain.value, before.generation)

    def _commit(self, generation: GenerationId, before: PublishedCommit | None, fence: int) -> PublishedCommit:
        """Copy missing files to the store. Return the commit that names the generation's files.

        ``before`` is the last commit in the store; ``None`` if there is none. ``fence`` is the new commit's number.
        """
        number = max(number_of(generation), before.number + 1 if before else 1)
        wanted = dict(generation_files(self.files, generation, number))
        served = dict(before.files) if before and not self.full else {}
        digests = Digests(self.files.folder.parent)
        there = {name: served[name] for name, path in wanted.items() if _is_served(name, path, served, digests)}
        here = {name: path for name, path in wanted.items() if name not in there}
        for path in here.values():
            self.files.bring(path)
        named = [] if self.full or before is None else before.kept_files
        files = push(self.store, prefix_of(self.domain.value), fence, here, named, digests) | there
        digests.save()
        publish, counts = self.settings.publish, (manifest := self.files.manifest(generation)).counts
        assert publish is not None
        keep, grace = publish.keep_generations - 1, timedelta(hours=publish.grace_hours)
        return PublishedCommit(
            domain=self.domain,
            commit=secrets.token_hex(8),
            fence=fence,
            number=number,
            built_as=generation,
            built_at=datetime.fromisoformat(manifest.built_at),
            documents=counts.documents,
            chunks=counts.chunks,
            files=files,
            replaced=before.replaced_by(files.values(), keep, grace) if before else (),
            oldest=before.oldest if before else 0,
            publisher=self.publisher,
            published_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )

    def _noted(self, commit: PublishedCommit) -> Published:
        published = Published(
            url=self.store.url,
            number=commit.number,
            commit=commit.commit,
            built_as=commit.built_as,
            at=commit.published_at,
            tried_at=commit.published_at,
        )
        write_published(self._record, published)
        self.files.raise_floor(commit.number)
        return published

    @property
    def _record(self) -> Path:
        return record_file(self.settings.data_dir, self.domain.value)


def _is_served(name: str, path: Path, served: Files, digests: Digests) -> bool:
    """Tell whether a segment's file is missing on this machine, but the store has it with the same checksum."""
    checksum = checksum_file(path.with_name(path.name.removesuffix(ARRAYS)))
    known = served.get(checksum_file(Path(name.removesuffix(ARRAYS))).as_posix())
    return not path.is_file() and name in served and known is not None and known.sha256 == digests.of(checksum)


def _is_same(commit: PublishedCommit, other: PublishedCommit) -> bool:
    """Tell whether two commits have the same publisher, generation and files."""
    files, others = (sorted(file.sha256 for file in each.files.values()) for each in (commit, other))
    return (commit.publisher, commit.built_as, files) == (other.publisher, other.built_as, others)


def generation_files(files: GenerationFiles, generation: GenerationId, number: int) -> Iterator[tuple[str, Path]]:
    """Yield a generation's files, checksums and arrays by their names in a commit.

    The name of a file that belongs only to this generation contains the number in the store. A segment keeps its own
    name, because later generations may share it.

    Raises:
        PublicationError: a file is gone.
    """
    for part in files.parts(generation):
        if not part.is_file() and not files.is_elsewhere(part):
            raise PublicationError(f"{files.folder}: a file of {generation} is gone; sync, then publish again")
        for path in (part, checksum_file(part)):
            if path.is_file() or files.is_elsewhere(path):
                own = path.name.startswith(f"{generation}.")
                name = f"gen-{number:06d}{path.name.removeprefix(generation)}" if own else path.name
                yield f"{files.folder.name}/{name}", path


def publish_domains(
    settings: Settings, domains: Sequence[Domain], *, take_over: bool = False, full: bool = False
) -> dict[Domain, Published | str | None]:
    """Copy the published generations of some domains and the workspace document to the store.

    ``take_over`` and ``full`` are those of ``Upload``.

    Returns:
        Domain → the record of the store's copy, or ``None`` if nothing is published, or why the copy failed.

    Raises:
        ConfigError: no store is configured.
        PublicationError: the workspace document cannot be written.
    """
    if settings.publish is None:
        raise ConfigError(
            f"{settings.file}: key 'publish' is missing; it says where to: publish: {{url: s3://bucket/x}}"
        )
    store, publisher = ObjectStore(settings.publish), publisher_id(settings)
    upload = partial(Upload, settings=settings, store=store, publisher=publisher, take_over=take_over, full=full)
    done: dict[Domain, Published | str | None] = {}
    has_lost = False
    for domain in domains:
        try:
            with hold_domain(settings, domain, "publish", WAIT_S) as confirm:
                done[domain] = upload(domain=domain, files=store_of(settings, domain).files).run(confirm)
        except NornWeaveError as error:
            note_problem(settings, domain, str(error))
            done[domain] = str(error)
            has_lost |= isinstance(error, PublisherConflictError)
    if not has_lost:  # a publisher that lost a domain does not publish settings
        publish_workspace(store, settings, publisher, take_over=take_over)
    return done


def publish_after_sync(settings: Settings, domain: Domain) -> str | None:
    """Copy the result of a sync to the store. A failure is recorded, and the next sync tries again.

    Returns:
        Why the copy failed; ``None`` if it succeeded or no store is configured.
    """
    if settings.publish is None:
        return None
    try:
        if settings.workers and settings.workers.leases:
            take_over_workspace(ObjectStore(settings.publish), settings)  # another machine's may be newer
        outcome = publish_domains(settings, [domain])[domain]
    except (NornWeaveError, OSError) as error:
        note_problem(settings, domain, str(error))
        outcome = str(error)
    problem = outcome if isinstance(outcome, str) else None
    if problem:
        log.warning("%s: is published here, not in the store: %s", domain.value, problem)
    return problem


def refresh_workspace(settings: Settings) -> None:
    """Copy a new ledger to the store. A failure is logged, and the next sync tries again."""
    if settings.publish is None:
        return
    try:
        publish_workspace(ObjectStore(settings.publish), settings, publisher_id(settings))
    except (NornWeaveError, OSError) as error:
        log.warning("the store does not know of the new ledger: %s", error)


def note_problem(settings: Settings, domain: Domain, problem: str) -> None:
    """Record why a domain could not be copied. The record of the last copy stays."""
    assert settings.publish is not None
    known = read_last_copy(settings, domain) or Published(url=settings.publish.url)
    noted = replace(known, problem=problem, tried_at=utc_text(present(), "seconds"))
    write_published(record_file(settings.data_dir, domain.value), noted)


def read_last_copy(settings: Settings, domain: Domain) -> Published | None:
    """Return the record of a domain's last copy to the configured store; ``None`` if there is none.

    The record includes a problem that occurred later.
    """
    if settings.publish is None:
        return None
    known = read_published(record_file(settings.data_dir, domain.value))
    return known if known and known.url == settings.publish.url else None


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
