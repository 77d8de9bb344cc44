"""The records of publications: signed commits and ``WORKSPACE`` in an object store, and those on our own disk.

``CURRENT`` of a domain is its last commit. It is replaced on condition that it is still the one that was read, so of
two publishers that work at once one wins; whatever ends an upload before that leaves the store as readers know it.

Remains of a deleted document are found and removed in both.
"""

from __future__ import annotations

import json
import logging
import secrets
import tempfile
import time
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from nornweave.carry.parts import FORMAT, ObjectStore, StoredFile, fetch, parts_of, prefix_of, remove_unnamed
from nornweave.config import Settings
from nornweave.core.deletion import Deleted, Place, Search
from nornweave.core.errors import MissingObjectError, PublicationError, PublisherConflictError, SignatureError
from nornweave.core.files.writing import write_whole
from nornweave.core.signatures import Signer, check_signed, own_keys, read_signed, signer_of
from nornweave.core.types import Domain, GenerationId, JsonValue, digest
from nornweave.index.searching.generation_file import TEXTS_OF, DataFile, read_rows

log = logging.getLogger(__name__)
R = TypeVar("R")
# After this many seconds without an answer from its store, a replica says so in its notices.
SILENT_S = 30.0
_READ_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """The state of a replica for one domain.

    Attributes:
        url: the address of the store.
        published: the generation that the store names; ``None`` if it is unknown.
        published_at: when this generation was published, as ISO 8601.
        behind_s: seconds since the replica learnt of this generation without having it, or since the store last
            answered; 0 if the replica has it.
        checked_s: seconds since the store last answered and had every object that it names; ``None`` if it never did.
        problems: what is wrong, for people.
    """

    url: str
    published: str | None
    published_at: str | None
    behind_s: float
    checked_s: float | None
    problems: tuple[str, ...]

    def as_json(self) -> dict[str, JsonValue]:
        """Return the state for ``/health``."""
        return {
            "url": self.url,
            "published": self.published,
            "published_at": self.published_at,
            "behind_s": round(self.behind_s, 1),
            "checked_s": None if self.checked_s is None else round(self.checked_s, 1),
        }


class StandingBook:
    """Reads a replica's record, and reads it again when it may have changed. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.replica_of
        self._file = standing_file(settings.data_dir)
        self._read: tuple[float, Standing | None] = (float("-inf"), None)

    def of(self, domain: Domain) -> Following | None:
        """Return the replica's state for a domain; ``None`` if the workspace is not a replica."""
        if self._url is None:
            return None
        standing = self._standing()
        if standing is None:
            return Following(
                url=self._url, published=None, published_at=None, behind_s=0.0, checked_s=None,
                problems=("the store has not been looked at yet",),
            )  # fmt: skip
        now, noted = time.time(), standing.domains.get(domain.value, DomainStanding())
        checked_s = max(0.0, now - standing.checked_at) if standing.checked_at else None
        return Following(
            url=self._url,
            published=noted.published,
            published_at=noted.published_at,
            behind_s=max(
                now - noted.behind_since if noted.behind_since else 0.0,
                checked_s if checked_s is not None and checked_s > SILENT_S else 0.0,
            ),
            checked_s=checked_s,
            problems=tuple(_problems(standing, noted, checked_s)),
        )

    def _standing(self) -> Standing | None:
        read_at, standing = self._read
        if time.monotonic() - read_at > _READ_AGAIN_S:
            standing = read_standing(self._file)
            self._read = (time.monotonic(), standing)
        return standing


def _problems(standing: Standing, noted: DomainStanding, checked_s: float | None) -> list[str]:
    problems = [one for one in (standing.problem, noted.problem) if one]
    if checked_s is None or checked_s > SILENT_S:
        since = "ever" if checked_s is None else f"for {checked_s:.0f} s"
        problems.append(f"the store has not answered as it should {since}; what was brought before answers")
    return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A publisher's record of its last copy of one domain.

    Attributes:
        url: the address of the store.
        number: the generation's number in the store; 0 before the first copy.
        commit: the name of the commit in the store.
        built_as: the generation's name on this disk.
        at: when it was copied, as ISO 8601.
        problem: why the last try failed; ``None`` if it succeeded.
        lost: whether the last try failed because another publisher has published the domain.
        tried_at: when the last try was, as ISO 8601.
    """

    url: str
    number: int = 0
    commit: str = ""
    built_as: str | None = None
    at: str | None = None
    problem: str | None = None
    lost: bool = False
    tried_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainStanding:
    """A replica's record of one domain.

    Attributes:
        published: the generation that the store names.
        published_at: when this generation was published, as ISO 8601.
        generation: the newest generation that is complete on the replica.
        behind_since: when the replica learnt of a generation that it lacks, in seconds since 1970; ``None`` if it lacks
            none.
        problem: why the replica lacks it.
    """

    published: str | None = None
    published_at: str | None = None
    generation: str | None = None
    behind_since: float | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A replica's record.

    Attributes:
        url: the address of the store.
        checked_at: when the store last answered for every domain, in seconds since 1970.
        problem: what is wrong with the store or the workspace document.
        domains: name of a domain → its record.
    """

    url: str
    checked_at: float = 0.0
    problem: str | None = None
    domains: dict[str, DomainStanding] = field(default_factory=dict)


_PUBLISHED, _STANDING = TypeAdapter(Published), TypeAdapter(Standing)


def publisher_id(settings: Settings) -> str:
    """Return the id of this data folder as a publisher. Machines that share domains have the same id."""
    if settings.workers and settings.workers.leases:
        return digest(settings.workers.objects)
    file = settings.data_dir / "publication" / "publisher-id"
    try:
        known = file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        known = ""
    except OSError as error:
        raise PublicationError(f"{file}: cannot be read: {error}") from error
    if len(known) == 32:
        return known
    file.parent.mkdir(parents=True, exist_ok=True)
    made = uuid.uuid4().hex
    write_whole(file, f"{made}\n")
    return made


def record_file(data_dir: Path, subject: str) -> Path:
    """Return the path of a publisher's record. ``subject`` is a domain, or the name of the workspace document."""
    return data_dir / "publication" / f"{subject}.json"


def standing_file(data_dir: Path) -> Path:
    """Return the path of a replica's record."""
    return data_dir / "replica.json"


def read_published(file: Path) -> Published | None:
    """Return a publisher's record; ``None`` if there is none or it cannot be read."""
    return _read(_PUBLISHED, file)


def read_standing(file: Path) -> Standing | None:
    """Return a replica's record; ``None`` before its first poll."""
    return _read(_STANDING, file)


def write_published(file: Path, record: Published) -> None:
    """Replace a publisher's record durably.

    Raises:
        PublicationError: the record cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(asdict(record)))
    except OSError as error:
        raise PublicationError(f"{file}: cannot be written: {error}") from error


def write_standing(file: Path, standing: Standing) -> None:
    """Replace a replica's record atomically but not durably, because it need not survive a crash.

    Raises:
        OSError: the record cannot be written.
    """
    aside = file.with_name(f".{file.name}.new")
    aside.write_text(json.dumps(asdict(standing)), encoding="utf-8")
    aside.replace(file)


def _read(kind: TypeAdapter[R], file: Path) -> R | None:
    """Return a record; ``None`` if it is missing or damaged. Unknown keys are ignored."""
    try:
        return kind.validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        log.warning("%s: cannot be read, it is made anew: %s", file, error)
        return None


GenerationFile = Annotated[
    str,
    StringConstraints(
        pattern=r"^generations/(gen-\d{6,12}\.json(\.crc32)?|gen-\d{6,12}-\d{3}\.duckdb(\.crc32|\.arrays)?)$"
    ),
]
PublisherId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]

_MAGIC = b"DUCK"  # of a DuckDB file, after its checksum


class OtherFormatError(PublicationError):
    """A document has the format of another version."""


class SignedDocument(BaseModel):
    """A document of the store. Unknown keys are ignored.

    Attributes:
        signed_by: the public key of the publisher; empty if the document is not signed.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: int = Field(FORMAT, ge=FORMAT, le=FORMAT)
    signed_by: str = ""


D = TypeVar("D", bound=SignedDocument)


class Replaced(BaseModel):
    """Files of an older commit that readers may still use."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    at: datetime
    files: Mapping[str, StoredFile]


class PublishedCommit(SignedDocument):
    """The record of one complete generation of a domain in the store.

    Attributes:
        commit: the unique name of the commit.
        fence: a number that grows with every commit.
        number: the generation's number on replicas. It grows with every publication, even of an older generation.
        built_as: the generation's name on the publisher's disk.
        replaced: files of older commits, the oldest commit first.
        oldest: the lowest number that replicas may serve. They remove older generations.
    """

    domain: Domain
    commit: str
    fence: int = Field(ge=1, lt=10**12)
    number: int = Field(ge=1, lt=10**12)
    built_as: str
    built_at: datetime
    documents: int
    chunks: int
    files: Mapping[GenerationFile, StoredFile] = Field(min_length=1, max_length=10_000)
    replaced: tuple[Replaced, ...] = ()
    oldest: int = 0
    publisher: PublisherId
    published_at: str

    @property
    def generation(self) -> GenerationId:
        """Return the generation's name on replicas."""
        return GenerationId(f"gen-{self.number:06d}")

    @property
    def kept_files(self) -> list[StoredFile]:
        """Return the commit's files and the replaced files that it keeps."""
        return [*self.files.values(), *(file for each in self.replaced for file in each.files.values())]

    def replaced_by(self, files: Iterable[StoredFile], keep: int, grace: timedelta) -> tuple[Replaced, ...]:
        """Return the replaced files that the next commit keeps.

        They are those of the newest ``keep`` commits, and those that were replaced less than ``grace`` ago.

        Args:
            files: the files of the next commit.
        """
        now, parts = datetime.now(UTC), parts_of(files)
        dropped = {name: file for name, file in self.files.items() if not parts.issuperset(file.parts)}
        every = [*self.replaced, Replaced(at=now, files=dropped)]
        recent = len(every) - keep
        return tuple(each for place, each in enumerate(every) if place >= recent or now - each.at < grace)


class Publication:
    """The commits of one domain in an object store. Implements ``parts.Claim``.

    A publication is not locked. If two processes take it, the second one to commit is refused.

    Args:
        store: the object store.
        domain: the name of the domain.
        signer: signs commits; ``None`` for readers.
        keys: the public keys of trusted publishers. If it is empty, signatures are not checked.
    """

    def __init__(
        self, store: ObjectStore, domain: str, signer: Signer | None = None, keys: Collection[str] = ()
    ) -> None:
        self.fence = 0
        self._store = store
        self._key = commit_key(domain)
        self._signer = signer
        self._keys = keys
        self._tag: str | None = None

    def take(self, wait_s: float = 0) -> Mapping[str, Any]:  # noqa: ARG002 - nobody is waited for
        """Return the last commit; empty if there is none. ``wait_s`` has no effect, because nothing is locked."""
        state, self._tag = self._read()
        self.fence = int(state.get("fence", 0)) + 1
        return state

    def state(self) -> Mapping[str, Any]:
        """Return the last commit; empty if there is none."""
        return self._read()[0]

    def _read(self) -> tuple[Mapping[str, Any], str | None]:
        try:
            stored = self._store.read(self._key)
        except MissingObjectError:
            return {}, None
        assert stored is not None
        return parse_checked(stored.content, f"{self._store.url}/{self._key}", self._keys), stored.tag

    def confirm(self) -> None:
        """Check that nobody has committed since ``take``."""
        if self._read()[1] != self._tag:
            raise PublisherConflictError(f"{self._store.url}/{self._key}: was written by somebody else meanwhile")

    def commit(self, state: Mapping[str, Any]) -> None:
        """Replace the commit that ``take`` read. Refuse if somebody else has replaced it since."""
        assert self._signer
        document = self._signer.signed({**state, "fence": self.fence})
        self._tag = self._store.replace(self._key, as_json(document), self._tag)

    def release(self) -> None:
        """Do nothing, because a publication is not locked."""


def commit_key(domain: str) -> str:
    """Return the key of a domain's last commit."""
    return f"{prefix_of(domain)}/CURRENT"


def as_json(document: Mapping[str, Any]) -> bytes:
    """Return a signed document as stored bytes."""
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"


def is_signed(document: SignedDocument, data_dir: Path) -> bool:
    """Tell whether a document is signed with a key that is not a retired key of this workspace."""
    return document.signed_by not in {"", *own_keys(data_dir)[1:]}


def read_json(kind: type[D], content: bytes, where: str, keys: Collection[str] = ()) -> D:
    """Return a stored document as an instance of ``kind``, after checking its signature and format.

    Args:
        kind: the class of the document.
        content: the stored bytes.
        where: the document's place, for messages.
        keys: the public keys of trusted publishers. If it is empty, the signature is not checked.

    Raises:
        PublicationError: the document is damaged or of another format, or none of these keys has signed it.
    """
    return read_state(kind, parse_checked(content, where, keys), where)


def parse_checked(content: bytes, where: str, keys: Collection[str] = ()) -> dict[str, Any]:
    """Return a document as a dictionary after checking its signature and format.

    The arguments and errors are those of ``read_json``.
    """
    try:
        document = read_signed(content)
        if keys:
            check_signed(document, keys)
    except SignatureError as error:
        raise PublicationError(
            f"{where}: {error}; `nornweave key` where it is published prints the key for 'publish.public_keys' here"
        ) from error
    except ValueError as error:
        raise PublicationError(f"{where}: is damaged: {error}") from error
    if document.get("format") != FORMAT:
        raise OtherFormatError(
            f"{where}: is of another version (format {document.get('format')!r}, not {FORMAT}); publish to another "
            "address with this version, and let replicas of this version follow that one"
        )
    return document


def read_state(kind: type[D], state: Mapping[str, Any], where: str) -> D:
    """Return a parsed document as an instance of ``kind``. If a field is wrong, the error names the place ``where``."""
    try:
        return kind.model_validate(state)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, problem["loc"])) or "the whole"
        raise PublicationError(f"{where}: is damaged: {place}: {problem['msg']}") from error


def store_places(settings: Settings) -> list[Place]:
    """Return the object store as a place to search for deleted documents; empty if this workspace has none."""
    if settings.publish is None:
        return []
    store = ObjectStore(settings.publish)
    return [
        Place(
            name=f"generations in {store.url}",
            search=lambda deleted: _search(store, deleted),
            purge=lambda deleted: _purge(store, settings, deleted),
            remedy="`nornweave receipt --purge` removes it, after `nornweave publish` where that failed",
        )
    ]


def _search(store: ObjectStore, deleted: Deleted) -> Search:
    """Search every file of the domain in the store for remains of a document. Return how many were found, and where.

    Objects that no commit names count as remains, too.
    """
    state = Publication(store, deleted.domain.value).state()
    commit = read_state(PublishedCommit, state, store.url) if state else None
    named = [commit.files, *(each.files for each in commit.replaced)] if commit else []
    distinct = {file.sha256: (name, file) for files in named for name, file in files.items()}
    holding = [name for name, file in distinct.values() if _holds(store, file, deleted)]
    parts = {each.key for each in store.list(prefix_of(deleted.domain.value)) if not each.key.endswith("CURRENT")}
    left = [*holding, *sorted(parts - parts_of(commit.kept_files if commit else ()))]
    return Search(len(left), f"{len(distinct)} files, fetched and opened", tuple(left[:10]))


def _holds(store: ObjectStore, stored: StoredFile, deleted: Deleted) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "object.duckdb"
        fetch(store, stored, file)
        with file.open("rb") as stream:
            is_database = stream.read(12)[8:] == _MAGIC
        if not is_database:
            return deleted.is_in_file(file)
        return bool(read_rows(DataFile(file), TEXTS_OF, [deleted.source_id, deleted.path]))


def _purge(store: ObjectStore, settings: Settings, deleted: Deleted) -> None:
    """Remove all generations of the domain except the published one, from the store and from replicas."""
    claim = Publication(store, deleted.domain.value, signer_of(settings.data_dir))
    if not (state := claim.take()):  # nothing of the domain was published there yet
        return
    commit = read_state(PublishedCommit, state, store.url)
    forbidding = {"commit": secrets.token_hex(8), "oldest": commit.number, "replaced": ()}
    commit = commit.model_copy(update=forbidding)
    claim.commit(commit.model_dump(mode="json"))
    remove_unnamed(store, prefix_of(deleted.domain.value), claim.fence, parts_of(commit.kept_files))
