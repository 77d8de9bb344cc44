"""What a publisher does: after a sync, and for ``nornweave publish``.

A generation is copied to the object store: files, then a manifest, then the pointer. The pointer is replaced only if it
is still the one that was read at the start, so of two publishers one wins. Whatever ends an upload before that leaves
the store as readers know it.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from nornweave.carry.garbage import collect_garbage
from nornweave.carry.manifest import (
    FileEntry,
    Pointer,
    PublishedManifest,
    digest_of,
    is_segment,
    is_signed,
    manifest_key,
    object_key,
    pointer_key,
    read_document,
    read_json,
    to_json,
)
from nornweave.carry.object_store import PART_BYTES, ObjectStore
from nornweave.carry.standing import Published, publisher_id, read_published, record_file, write_published
from nornweave.carry.wiring import domain_folder, held_domain, store_of
from nornweave.carry.workspace_document import publish_workspace, take_over_workspace
from nornweave.config import Settings
from nornweave.config.publish import PublishSettings
from nornweave.core.errors import (
    ConfigError,
    MissingObjectError,
    NornWeaveError,
    PublicationError,
    PublisherConflictError,
)
from nornweave.core.signatures import signer_of
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Domain, GenerationId, present
from nornweave.index.generations.checksums import SUFFIX as CHECKSUM_SUFFIX
from nornweave.index.generations.checksums import checksum_file
from nornweave.index.generations.kept import number_of
from nornweave.index.generations.publish import GenerationFiles
from nornweave.index.searching.arrays import SUFFIX as ARRAYS_SUFFIX
from nornweave.index.searching.generation_file import statistics_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """What one upload works with.

    Attributes:
        store: where to.
        settings: of it.
        publisher: who publishes.
        domain: whose generation.
        files: of the domain, on this disk.
        data_dir: where is noted what was published.
        take_over: publish also where another publisher was the last one.
        full: copy files also when the store has them, as after damage there.
        confirm: fails when the domain is another machine's by now.
    """

    store: ObjectStore
    settings: PublishSettings
    publisher: str
    domain: Domain
    files: GenerationFiles
    data_dir: Path
    take_over: bool = False
    full: bool = False
    confirm: Callable[[], None] = lambda: None

    def run(self) -> Published | None:
        """Copy what is published here, unless the store has it; return what the store has then.

        Returns:
            ``None`` when nothing is published here.

        Raises:
            PublicationError: the store cannot be reached, or the files are gone.
            PublisherConflictError: another publisher was there first.
            LeaseLostError: another machine has taken over the domain.
        """
        generation = self.files.current()
        if generation is None:
            return None
        started = time.monotonic()
        pointer, tag = self._pointer()
        self.confirm()  # whoever takes over after this and publishes first changes the tag
        known = read_published(record_file(self.data_dir, self.domain.value))
        if known and (known.url != self.store.url or not (known.at or known.lost)):
            known = None
        self._check_publisher(pointer, known)
        is_ours = pointer is not None and is_signed(pointer, self.data_dir)
        is_stored = is_ours and known and pointer and (known.built_as, known.manifest) == (generation, pointer.sha256)
        if is_stored and not self.full:
            return known
        replaced = self._manifest(pointer) if pointer else None
        copies = self._copies(generation, replaced)
        is_same = replaced is not None and _is_same(replaced, self.publisher, generation, copies)
        if is_ours and pointer and replaced and is_same and not self.full:
            return self._noted(replaced, pointer.sha256)  # by another machine, or by one killed before it noted it
        manifest = self._made(generation, pointer, copies)
        content = to_json(manifest, signer_of(self.data_dir))
        key = manifest_key(manifest, content)
        _check_pace(started, self.settings.grace_hours, self.store.url)
        self.store.write(key, content)
        self._point(manifest, key, content, tag, oldest=pointer.oldest if pointer else 0)
        published = self._noted(manifest, digest_of(content))
        self._check_objects(manifest)
        collect_garbage(self.store, self.settings, self.domain)
        return published

    def _pointer(self) -> tuple[Pointer | None, str | None]:
        key = pointer_key(self.domain)
        try:
            stored = self.store.read(key)
        except MissingObjectError:
            return None, None
        assert stored is not None
        return read_json(Pointer, stored.content, f"{self.store.url}/{key}"), stored.tag

    def _check_publisher(self, pointer: Pointer | None, known: Published | None) -> None:
        """Let a publisher without a memory, as after the loss of a disk, go on; refuse two that take turns."""
        if pointer is None or pointer.publisher == self.publisher or self.take_over:
            return
        if known is not None:
            raise PublisherConflictError(
                f"{self.store.url}: another publisher ({pointer.publisher[:8]}) published {self.domain.value} "
                f"gen-{pointer.number:06d} at {pointer.published_at}; two publishers of one address take turns in "
                "hiding each other's work: stop one, then run `nornweave publish --take-over` with the other"
            )
        log.warning("%s: continues after gen-%06d of another publisher", self.domain.value, pointer.number)

    def _manifest(self, pointer: Pointer) -> PublishedManifest | None:
        """Return the manifest that counts now; one that is damaged is replaced like any other."""
        try:
            return read_document(self.store, PublishedManifest, pointer.manifest)
        except PublicationError as error:
            log.warning("%s: %s", self.domain.value, error)
            return None

    def _copies(self, generation: GenerationId, replaced: PublishedManifest | None) -> tuple[FileEntry, ...]:
        """Copy the files; return what and where they are."""
        served = {file.suffix: file for file in replaced.files} if replaced and not self.full else {}
        if not all(part.is_file() or self.files.is_elsewhere(part) for part in self.files.parts(generation)):
            raise PublicationError(f"{self.files.folder}: a file of {generation} is gone; sync, then publish again")
        return tuple(self._entry(*file, served) for file in generation_files(self.files, generation))

    def _made(
        self, generation: GenerationId, pointer: Pointer | None, copies: tuple[FileEntry, ...]
    ) -> PublishedManifest:
        return PublishedManifest(
            domain=self.domain,
            number=max(number_of(generation), pointer.number + 1 if pointer else 1),
            built_as=generation,
            files=copies,
            facts=self.files.facts(generation),
            statistics=statistics_of(self.files.data_files(generation)),
            previous=pointer.manifest if pointer else None,
            publisher=self.publisher,
            published_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )

    def _entry(self, suffix: str, path: Path, served: dict[str, FileEntry]) -> FileEntry:
        """Copy a file unless what is served has it; a segment that it has is known by its checksum and is not read."""
        known, checksum = served.get(suffix), served.get(f"{suffix.removesuffix(ARRAYS_SUFFIX)}{CHECKSUM_SUFFIX}")
        if known and checksum and is_segment(suffix) and (not path.is_file() or known.size == path.stat().st_size):
            stored = checksum_file(path.with_name(suffix.removesuffix(ARRAYS_SUFFIX)))
            if measured(checksum.suffix, stored).sha256 == checksum.sha256:
                return known
        return self._copied(suffix, path, served)

    def _copied(self, suffix: str, path: Path, served: dict[str, FileEntry]) -> FileEntry:
        """Copy a file unless what is served has it.

        An object that nothing refers to is used again only while it is too young to be removed: a collection of garbage
        that another process has begun must not take it away. Otherwise the file gets a name of its own.
        """
        self.files.bring(path)
        entry = measured(suffix, path)
        if same := next((file for file in served.values() if file.sha256 == entry.sha256), None):
            return entry.model_copy(update={"key": same.key})
        there = self.store.look(entry.key)
        young = timedelta(hours=self.settings.grace_hours) / 4
        is_usable = there and there.size == entry.size and datetime.now(UTC) - there.modified < young
        if is_usable and not self.full:
            return entry
        if there:
            entry = entry.model_copy(update={"key": object_key(entry.sha256, secrets.token_hex(4))})
        self.store.write(entry.key, path)
        return entry

    def _point(self, manifest: PublishedManifest, key: str, content: bytes, tag: str | None, *, oldest: int) -> None:
        pointer = Pointer(
            domain=self.domain,
            number=manifest.number,
            manifest=key,
            sha256=digest_of(content),
            publisher=self.publisher,
            published_at=manifest.published_at,
            oldest=oldest,
        )
        try:
            self.store.replace(pointer_key(self.domain), to_json(pointer, signer_of(self.data_dir)), tag)
        except PublisherConflictError as error:
            self._note(Published(url=self.store.url, lost=True))
            raise PublisherConflictError(
                f"{self.store.url}: another publisher published {self.domain.value} while {manifest.built_as} was "
                "being copied; theirs counts. Stop one of the two, then run `nornweave publish --take-over`"
            ) from error

    def _noted(self, manifest: PublishedManifest, sha256: str) -> Published:
        published = Published(
            url=self.store.url,
            number=manifest.number,
            manifest=sha256,
            built_as=manifest.built_as,
            at=manifest.published_at,
            tried_at=manifest.published_at,
        )
        self._note(published)
        self.files.raise_floor(manifest.number)
        return published

    def _note(self, record: Published) -> None:
        try:
            write_published(record_file(self.data_dir, self.domain.value), record)
        except OSError as error:
            raise PublicationError(f"{self.data_dir}: cannot be written: {error}") from error

    def _check_objects(self, manifest: PublishedManifest) -> None:
        """Copy again what was removed while this process was held up, under new names."""
        missing = [file.suffix for file in manifest.files if self.store.look(file.key) is None]
        if missing:
            self._note(Published(url=self.store.url))
            raise PublicationError(
                f"{self.store.url}: {', '.join(missing)} of {manifest.generation} was removed during the upload; "
                "run `nornweave publish --full`"
            )


def _check_pace(started: float, grace_hours: float, address: str) -> None:
    """Refuse to name objects that may have been removed meanwhile."""
    took_s, longest_s = time.monotonic() - started, grace_hours * 3600 / 2
    if 0 < longest_s < took_s:
        raise PublicationError(
            f"{address}: the upload took {took_s:.0f} s, more than half of grace_hours; it starts over"
        )


def _is_same(
    manifest: PublishedManifest, publisher: str, generation: GenerationId, copies: Sequence[FileEntry]
) -> bool:
    """Tell whether a manifest is of a publisher's generation with the same files."""
    files, others = ({(file.suffix, file.sha256) for file in each} for each in (manifest.files, copies))
    return (manifest.publisher, manifest.built_as, files) == (publisher, generation, others)


def generation_files(files: GenerationFiles, generation: GenerationId) -> Iterator[tuple[str, Path]]:
    """Yield the files of a generation with their checksums and arrays, by the names that a manifest gives them.

    What belongs to this generation alone is named by what follows its name; a segment, which later generations may
    share, by its whole name.
    """
    for part in files.parts(generation):
        for path in (part, checksum_file(part)):
            if path.is_file() or files.is_elsewhere(path):
                own = path.name.startswith(f"{generation}.")
                yield (path.name.removeprefix(generation) if own else path.name), path


def measured(suffix: str, path: Path) -> FileEntry:
    """Return what a manifest says of a file.

    Raises:
        PublicationError: it cannot be read.
    """
    whole, parts, size = hashlib.sha256(), [], 0
    try:
        with path.open("rb") as stream:
            while part := stream.read(PART_BYTES):
                whole.update(part)
                parts.append(hashlib.sha256(part).hexdigest())
                size += len(part)
    except OSError as error:
        raise PublicationError(f"{path}: cannot be read: {error}; publish again") from error
    sha256 = whole.hexdigest()
    return FileEntry(suffix=suffix, key=object_key(sha256), size=size, sha256=sha256, parts=tuple(parts))


log = logging.getLogger(__name__)

WAIT_S = 60.0


def publish_domains(
    settings: Settings, domains: Sequence[Domain], *, take_over: bool = False, full: bool = False
) -> dict[Domain, Published | str | None]:
    """Copy what is published of some domains to the store, and how to answer from it.

    Returns:
        By domain what the store has now, ``None`` where nothing is published, or why it could not be copied.

    Raises:
        ConfigError: no store is configured.
        PublicationError: the workspace document cannot be written.
    """
    if settings.publish is None:
        raise ConfigError(
            f"{settings.file}: key 'publish' is missing; it says where to: publish: {{url: s3://bucket/x}}"
        )
    store, publisher = ObjectStore(settings.publish), publisher_id(settings)
    upload = partial(
        Upload,
        store=store,
        settings=settings.publish,
        publisher=publisher,
        data_dir=settings.data_dir,
        take_over=take_over,
        full=full,
    )
    done: dict[Domain, Published | str | None] = {}
    has_lost = False
    for domain in domains:
        try:
            with held_domain(settings, domain_folder(settings, domain), "publish", WAIT_S) as confirm:
                files = store_of(settings, domain).files
                done[domain] = upload(domain=domain, files=files, confirm=confirm).run()
        except NornWeaveError as error:
            note_problem(settings, domain, str(error))
            done[domain] = str(error)
            has_lost |= isinstance(error, PublisherConflictError)
    if not has_lost:  # who lost a domain does not say how to answer either
        publish_workspace(store, settings, publisher, take_over=take_over)
    return done


def publish_after_sync(settings: Settings, domain: Domain) -> str | None:
    """Copy what a sync published; a failure is noted for the status, and the next sync tries again.

    Returns:
        What went wrong; ``None`` if nothing did or no store is configured.
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
    """Tell the store of a new ledger; a failure is logged, and the next sync tries again."""
    if settings.publish is None:
        return
    try:
        publish_workspace(ObjectStore(settings.publish), settings, publisher_id(settings))
    except (NornWeaveError, OSError) as error:
        log.warning("the store does not know of the new ledger: %s", error)


def note_problem(settings: Settings, domain: Domain, problem: str) -> None:
    """Note for the status why a domain could not be copied; what was copied last stays noted."""
    assert settings.publish is not None
    file = record_file(settings.data_dir, domain.value)
    known = read_published(file)
    if known is None or known.url != settings.publish.url:
        known = Published(url=settings.publish.url)
    try:
        write_published(file, replace(known, problem=problem, tried_at=utc_text(present(), "seconds")))
    except OSError as error:
        raise PublicationError(f"{file}: cannot be written: {error}") from error


def copied(settings: Settings, domain: Domain) -> Published | None:
    """Return what was last copied of a domain to the configured store, and what went wrong since."""
    if settings.publish is None:
        return None
    known = read_published(record_file(settings.data_dir, domain.value))
    return known if known and known.url == settings.publish.url else None
