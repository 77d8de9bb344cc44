"""Files in parts on object stores: how a commit names them, and how they are stored, fetched and removed.

Every object is a part of a file, of 8 MiB at most, named by the fence of who stored it and its SHA-256. DuckDB writes
blocks of 256 kB of the working file in place: of 194 MB, a sync with one changed document leaves 5 MB in parts of 1 MiB
that it did not have before; smaller parts would be more requests.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from nornweave.config.workspace import ObjectStoreSettings
from nornweave.core.errors import MissingObjectError, PublicationError, PublisherConflictError, StoreError
from nornweave.core.files.lock import hold_lock
from nornweave.core.files.writing import sync_file, write_whole
from nornweave.core.installation import optional
from nornweave.index.writing.moving import WORKING_FILE

if TYPE_CHECKING:
    from obstore.store import ObjectStore as AnyStore

# A store that is silent for SILENT_S is down. One that is slow is not: at 3 kB/s a part arrives within READ_S, at
# 30 kB/s it is sent within SEND_S.
CONNECT_S, READ_S, SEND_S, RETRY_S = 5, 3_600, 300, 10
MAX_RETRIES = 3
PIECE_BYTES = 64 << 10
MAX_OBJECT_BYTES = 64 << 20
SILENT_S = 15

_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
# Cloud machines ask these addresses for credentials if the environment has none.
_METADATA = re.compile(r"169\.254\.\d+\.\d+|/latest/(?:api/token|meta-data)|computeMetadata|metadata/identity")
_SYSTEM_MESSAGE = re.compile(r'(?:message|error): "([^"]{1,200})"')


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """An object's content, and its tag for conditional requests."""

    content: bytes
    tag: str | None


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object in a listing. ``modified`` is a time of the store's clock."""

    key: str
    modified: datetime


class ObjectStore:
    """Objects below one address. Every method is thread-safe.

    Raises:
        PublicationError: every method raises it if the store cannot be reached, refuses or takes too long.
    """

    def __init__(self, settings: ObjectStoreSettings) -> None:
        self.url = settings.url
        self._settings = settings
        parts = urlsplit(settings.url)
        self._folder = Path(parts.path) if parts.scheme == "file" else None
        with self._translated("opened"):
            self._store = self._folder_store(self._folder) if self._folder else _remote_store(settings)
            self._sender = self._store if self._folder else _remote_store(settings, is_sending=True)

    def read(
        self, key: str, unless: str | None = None, *, arrived: Callable[[int], None] = lambda _: None
    ) -> StoredDocument | None:
        """Return an object; ``None`` if its tag is still ``unless``.

        Args:
            arrived: called with the number of bytes of each piece. An exception from it ends the request.

        Raises:
            MissingObjectError: there is no such object.
        """
        obstore = _obstore()
        from obstore.exceptions import NotModifiedError

        options: Any = {"if_none_match": unless} if unless else None
        content = bytearray()
        try:
            with self._translated(key):
                answer = obstore.get(self._store, key, options=options)
                if answer.meta["size"] > MAX_OBJECT_BYTES:
                    raise PublicationError(f"{self.url}/{key}: larger than {MAX_OBJECT_BYTES} bytes")
                for piece in answer.stream(min_chunk_size=PIECE_BYTES):
                    content += piece
                    arrived(len(piece))
        except NotModifiedError:
            return None
        return StoredDocument(bytes(content), answer.meta["e_tag"])

    def create(self, key: str, content: bytes) -> bool:
        """Write a small object if it does not exist. Return whether it was written."""
        obstore = _obstore()

        try:
            with self._translated(key):
                obstore.put(self._store, key, content, mode="create", use_multipart=False)
        except PublisherConflictError:
            return False
        return True

    def write(self, key: str, content: bytes) -> None:
        """Write an object atomically."""
        obstore = _obstore()

        with self._translated(key):
            obstore.put(self._sender, key, content, use_multipart=False)

    def replace(self, key: str, content: bytes, tag: str | None) -> str | None:
        """Write a document if its stored tag is still ``tag``; with ``None``, if it does not exist. Return its new tag.

        Raises:
            PublisherConflictError: somebody else has written the document since it was read.
        """
        try:
            return self._replace(key, content, tag)
        except PublicationError:
            if written := self._read_if_equal(key, content):  # our own earlier attempt
                return written.tag
            raise

    def _replace(self, key: str, content: bytes, tag: str | None) -> str:
        obstore = _obstore()

        if self._folder and tag is not None:
            # A folder has no conditional writes: lock out other publishers.
            with hold_lock(self._folder / ".lock"), self._translated(key):
                if obstore.head(self._store, key)["e_tag"] != tag:
                    raise PublisherConflictError(f"{self.url}/{key}: was written by somebody else meanwhile")
                return str(obstore.put(self._sender, key, content)["e_tag"])
        with self._translated(key):
            mode: Any = {"e_tag": tag} if tag is not None else "create"
            return str(obstore.put(self._sender, key, content, mode=mode, use_multipart=False)["e_tag"])

    def _read_if_equal(self, key: str, content: bytes) -> StoredDocument | None:
        """Return the stored document if it has this content, else ``None``."""
        try:
            stored = self.read(key)
        except PublicationError:
            return None
        return stored if stored and stored.content == content else None

    def has(self, key: str) -> bool:
        """Tell whether an object exists."""
        obstore = _obstore()

        try:
            with self._translated(key):
                obstore.head(self._store, key)
        except MissingObjectError:
            return False
        return True

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects below a prefix. A store may omit objects that are very new."""
        obstore = _obstore()

        with self._translated(prefix):
            for batch in obstore.list(self._store, prefix):
                for meta in batch:
                    yield StoredObject(meta["path"], meta["last_modified"])

    def remove(self, key: str) -> None:
        """Remove an object; do nothing if it is already gone."""
        obstore = _obstore()

        try:
            with self._translated(key):
                obstore.delete(self._store, key)
        except MissingObjectError:
            return

    def overwrite(self) -> None:
        """Do nothing, because a store removes objects completely."""

    @staticmethod
    def _folder_store(folder: Path) -> AnyStore:
        from obstore.store import LocalStore

        return LocalStore(folder, mkdir=True)

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        _obstore()
        from obstore import exceptions

        where = f"{self.url}/{what}"
        try:
            yield
        except (FileNotFoundError, exceptions.NotFoundError) as error:
            if "NoSuchBucket" in str(error):
                raise PublicationError(f"{where}: {_reason(error, self._settings)}") from error
            raise MissingObjectError(f"{where}: there is no such object") from error
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
            raise PublisherConflictError(f"{where}: was written by somebody else meanwhile") from error
        except exceptions.NotModifiedError:
            raise
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise PublicationError(f"{where}: {_refusal(self._settings)}") from error
        except (exceptions.BaseError, NotImplementedError, OSError, ValueError) as error:
            raise PublicationError(f"{where}: {_reason(error, self._settings)}") from error


def _obstore() -> ModuleType:
    """Import the client library of object stores.

    Raises:
        PublicationError: the library is not installed.
    """
    with optional("objects", "object storage", PublicationError):
        import obstore
    return obstore


def _remote_store(settings: ObjectStoreSettings, *, is_sending: bool = False) -> AnyStore:
    """Open a store. With ``is_sending`` it has no read timeout, because it is silent until everything is sent."""
    from obstore.store import from_url

    options: dict[str, Any] = {}
    if settings.endpoint:
        options["endpoint"] = settings.endpoint
    if settings.region:
        options["region"] = settings.region
    client: dict[str, Any] = {
        "timeout": timedelta(seconds=SEND_S if is_sending else READ_S),
        "connect_timeout": timedelta(seconds=CONNECT_S),
    }
    if not is_sending:
        client["read_timeout"] = timedelta(seconds=SILENT_S)
    if settings.allow_http or os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true":
        client["allow_http"] = True
    backoff = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=3), "base": 2}
    retry = {"max_retries": MAX_RETRIES, "retry_timeout": timedelta(seconds=RETRY_S), "backoff": backoff}
    open_store: Callable[..., AnyStore] = from_url  # it has a signature for each kind of store
    return open_store(settings.url, client_options=client, retry_config=retry, **options)


def _refusal(settings: ObjectStoreSettings) -> str:
    """Return advice for a store that answers with status 401 or 403."""
    return (
        f"the store refuses; check {_credentials(settings)}, and that they may list the bucket: without that right, "
        "what is not there yet is refused too"
    )


def _reason(error: BaseException, settings: ObjectStoreSettings) -> str:
    """Return why a request failed, from the client's error."""
    text = str(error)
    place = settings.endpoint or "the store"
    if _METADATA.search(text):
        return (
            f"no credentials: {_credentials(settings)} are not set in the environment of this process, and the "
            "machine has none of its own (no cloud's metadata service gives any)"
        )
    if "NoSuchBucket" in text:
        return f"there is no bucket {urlsplit(settings.url).netloc!r} at {place}; check the address"
    if "BadScheme" in text:
        return f"{place} is not encrypted; allow that with 'allow_http: true' or AWS_ALLOW_HTTP=true"
    if "InvalidContentType" in text:
        return f"{place} does not speak TLS; is it http:// instead?"
    if "incorrectly configured region" in text or "AuthorizationHeaderMalformed" in text:
        return "the bucket is in another region; set 'region' or AWS_REGION"
    if "kind: Timeout" in text or "TimedOut" in text:
        return f"{place} did not answer for {SILENT_S} s"
    if "kind: Connect" in text:
        said = _SYSTEM_MESSAGE.search(text)
        return f"{place} cannot be reached" + (f": {said[1]}" if said else "")
    return text.partition("\n")[0][:500] or type(error).__name__  # below it is debugging output


def _credentials(settings: ObjectStoreSettings) -> str:
    return _CREDENTIALS.get(urlsplit(settings.url).scheme, "its rights")


log = logging.getLogger(__name__)

FORMAT = 2
"""Of what is stored; another version's is refused."""
PART_BYTES, WORKING_PART_BYTES = 8 << 20, 1 << 20
PARTS_AT_ONCE = 4
DAMAGED_READS = 3
CLOCK_NS = 50_000_000
"""A file that was written later than this before it was read may be written again without another time."""
_ARRIVING = ".arriving"

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
PartKey = Annotated[str, StringConstraints(pattern=r"^domains/[A-Za-z0-9_-]+/\d{1,12}-[0-9a-f]{64}$")]
FileName = Annotated[
    str, StringConstraints(pattern=r"^([A-Za-z0-9_-][A-Za-z0-9_.-]{0,100}/){0,3}[A-Za-z0-9_-][A-Za-z0-9_.-]{0,100}$")
]


class StoredFile(BaseModel):
    """A file in a commit.

    Attributes:
        size: the size of the file in bytes.
        sha256: the SHA-256 of the whole file.
        part_size: the bytes of each part except the last.
        parts: the keys of the objects that hold the parts, in order.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    size: int = Field(ge=0, le=1 << 44)
    sha256: Sha256
    part_size: int = Field(ge=1 << 10, le=PART_BYTES)
    parts: tuple[PartKey, ...]


Files: TypeAlias = Mapping[FileName, StoredFile]
"""The files of a commit by their names in the folder of the domain."""
_FILES: TypeAdapter[Files] = TypeAdapter(Files)


class Objects(Protocol):
    """A store of parts that other machines can read. ``ObjectStore`` is one."""

    url: str

    def read(self, key: str, *, arrived: Callable[[int], None] = ...) -> StoredDocument | None:
        """Return an object, never ``None`` here. Call ``arrived`` with the number of bytes of each piece."""

    def write(self, key: str, content: bytes) -> None:
        """Write an object atomically."""

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects below a prefix."""

    def remove(self, key: str) -> None:
        """Remove an object."""

    def overwrite(self) -> None:
        """Erase the bytes of removed objects."""


class Claim(Protocol):
    """The exclusive right to write a domain, with the state for the next holder.

    Implemented by ``Lease``, ``PostgresCarrier`` and ``Publication``.
    """

    @property
    def fence(self) -> int:
        """The number of the current holding. Each time that a holder has committed, the next number is higher."""

    def take(self, wait_s: float) -> Mapping[str, Any]:
        """Take the claim. Return the last committed state; empty if there is none."""

    def state(self) -> Mapping[str, Any]:
        """Return the last committed state without taking the claim; empty if there is none."""

    def confirm(self) -> None:
        """Check that the claim is still held."""

    def commit(self, state: Mapping[str, Any]) -> None:
        """Store the state for the next holder if the claim is still held."""

    def release(self) -> None:
        """Release the claim."""


def files_in(state: Mapping[str, Any], where: str) -> Files:
    """Return the files that a committed state names; empty if the state is empty. Errors name the place ``where``.

    Raises:
        StoreError: another version has written the state, or it is damaged.
    """
    if not state:
        return {}
    if state.get("format") != FORMAT:
        raise StoreError(
            f"{where}: has format {state.get('format', 1)!r}, this version needs {FORMAT}; begin at another place "
            "(workers.objects, storage.schema_prefix): the next sync fills it from the sources"
        )
    try:
        return _FILES.validate_python(state["files"])
    except (KeyError, ValidationError) as error:
        raise StoreError(f"{where}: is damaged: what it says of its files cannot be read") from error


def prefix_of(domain: str) -> str:
    """Return the prefix of all objects of a domain."""
    return f"domains/{domain}"


def parts_of(files: Iterable[StoredFile]) -> set[str]:
    """Return the object keys of some files."""
    return {key for file in files for key in file.parts}


def push(
    objects: Objects, prefix: str, fence: int, paths: Mapping[str, Path], named: Iterable[StoredFile], digests: Digests
) -> dict[str, StoredFile]:
    """Store those parts of some files that are not stored yet. Return name → file for the commit.

    Args:
        objects: the store for the parts.
        prefix: the prefix of the domain.
        fence: the fence of the held claim. Parts that an earlier try with this fence stored are used again.
        paths: name in the commit → file on this machine.
        named: the files of kept commits. Their lost parts are stored again.
        digests: computes the digests of the files.

    Raises:
        PublicationError: the store refuses the parts, or a file cannot be read.
    """
    named, stored = list(named), {found.key for found in objects.list(prefix)}
    whole = {file.sha256: file for file in named if stored.issuperset(file.parts)}
    usable = {key for key in stored if _fence_of(key) == fence} | stored & parts_of(named)
    known = {_digest_in(key): key for key in sorted(usable)}

    def send(path: Path, start: int, length: int, digest: str) -> str:
        if digest not in known:
            objects.write(f"{prefix}/{fence}-{digest}", _read(path, start, length))
        return known.get(digest, f"{prefix}/{fence}-{digest}")

    pushed = {}
    with _threads() as pool:
        for name, path in paths.items():
            try:
                sha256, size = digests.of(path), path.stat().st_size
                part_size = WORKING_PART_BYTES if name == WORKING_FILE else PART_BYTES
                pushed[name] = whole.get(sha256) or StoredFile(
                    size=size,
                    sha256=sha256,
                    part_size=part_size,
                    parts=tuple(pool.map(lambda part, path=path: send(path, *part), _parts(path, part_size))),
                )
            except OSError as error:
                raise PublicationError(f"{path}: cannot be read: {error}; try again") from error
    return pushed


def pull(
    objects: Objects,
    folder: Path,
    files: Files,
    *,
    is_later: Callable[[str], bool] = lambda _: False,
    arrived: Callable[[int], None] = lambda _: None,
) -> None:
    """Download the files of a commit into a folder. The pointer for readers is the last one.

    Args:
        objects: the store with the parts of the files.
        folder: the folder of the domain.
        files: the files of the commit.
        is_later: tells whether a file is left out, because it is downloaded only when it is read.
        arrived: called by several threads with numbers of received bytes. An exception from it ends the pull.

    Raises:
        MissingObjectError: an object is gone.
        PublicationError: the store cannot be reached, or an object in it is damaged.
        OSError: a file cannot be written.
    """
    digests = Digests(folder)
    for left in folder.rglob(f".*{_ARRIVING}"):
        if left.with_name(left.name[1:].removesuffix(_ARRIVING)).relative_to(folder).as_posix() not in files:
            left.unlink(missing_ok=True)
    for name in sorted(files, key=_order):
        if not is_later(name) and not (has_file(path := folder / name, files[name], digests)):
            fetch(objects, files[name], path, arrived)
    digests.save()


def _order(name: str) -> tuple[bool, bool, bool, str]:
    """Return a sort key for downloads: ``.duckdb`` files, JSON files and the pointer come last, in this order."""
    return name.endswith("/CURRENT"), name.endswith(".json"), name.endswith(".duckdb"), name


def has_file(path: Path, file: StoredFile, digests: Digests) -> bool:
    """Tell whether a file is on this machine with the content of the commit."""
    return path.is_file() and path.stat().st_size == file.size and digests.of(path) == file.sha256


def fetch(objects: Objects, file: StoredFile, path: Path, arrived: Callable[[int], None] = lambda _: None) -> None:
    """Download a file. Parts in an earlier copy, or from an earlier try, are not downloaded again.

    Raises:
        MissingObjectError: an object is gone.
        PublicationError: the store cannot be reached, or an object in it is damaged.
        OSError: the file cannot be written.
    """
    if len(file.parts) != -(-file.size // file.part_size):
        raise PublicationError(f"{objects.url}: a commit names {len(file.parts)} parts of {file.size} bytes")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, earlier = path.with_name(f".{path.name}{_ARRIVING}"), earlier_copy(path)
    here = {
        digest: (copy, start)
        for copy in (temporary, earlier, path)
        if copy.is_file()
        for start, _, digest in _parts(copy, file.part_size)
    }
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def bring(number: int, key: str) -> int:
        start = number * file.part_size
        length, digest = min(file.part_size, file.size - start), _digest_in(key)
        copy, there = here.get(digest, (None, 0))
        if copy == temporary and there == start:
            return 0
        content = b"" if copy in {None, temporary} else _read(copy, there, length)
        if _digest(content) == digest:
            arrived(length)
        else:
            content = _read_part(objects, key, length, arrived)
        os.pwrite(descriptor, content, start)
        return length

    try:
        os.ftruncate(descriptor, file.size)
        with _threads() as pool:
            written = sum(pool.map(lambda part: bring(*part), enumerate(file.parts)))
        sync_file(descriptor)
    finally:
        os.close(descriptor)
    earlier.unlink(missing_ok=True)
    path.with_name(f"{path.name}.wal").unlink(missing_ok=True)  # left by a killed writer
    temporary.replace(path)
    log.info("%s: brought, %d bytes", path, written)


@contextmanager
def _threads() -> Iterator[ThreadPoolExecutor]:
    """Open a thread pool for parts. An error cancels the parts that have not begun."""
    pool = ThreadPoolExecutor(PARTS_AT_ONCE, thread_name_prefix="parts")
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def earlier_copy(path: Path) -> Path:
    """Return the path of a file's earlier copy. The copy is kept because it has most parts of the next version."""
    return path.with_name(f".{path.name}.earlier")


def _read_part(objects: Objects, key: str, length: int, arrived: Callable[[int], None]) -> bytes:
    """Return a part. If the store's answer is damaged, ask again."""
    for _ in range(DAMAGED_READS):
        stored = objects.read(key, arrived=arrived)
        if stored and len(stored.content) == length and _digest(stored.content) == _digest_in(key):
            return stored.content
        log.warning("%s/%s: arrived damaged", objects.url, key)
    raise PublicationError(
        f"{objects.url}/{key}: is damaged in the store; run `nornweave publish --full` where it is published, or "
        "remove it there: the next sync of a machine that has the file stores it anew"
    )


def remove_unnamed(objects: Objects, prefix: str, fence: int, needed: Collection[str]) -> None:
    """Remove the objects below a prefix that are not ``needed``. A failure is logged, and the next commit tries again.

    Objects with a fence above ``fence`` stay, because a newer writer may still need them.
    """
    try:
        for key in [found.key for found in objects.list(prefix)]:
            if key not in needed and 0 <= _fence_of(key) <= fence:
                objects.remove(key)
    except PublicationError as error:
        log.warning("what is not needed any more stays: %s", error)


class Digests:
    """Finds the SHA-256 of files in a folder. Digests are stored for later processes; a changed file is read again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / ".digests.json"
        try:
            self.known: dict[str, list[object]] = dict(json.loads(self._file.read_bytes()))
        except (OSError, ValueError, TypeError):
            self.known = {}

    def of(self, path: Path) -> str:
        """Return the digest of a file."""
        name, status = path.relative_to(self._folder).as_posix(), path.stat()
        identity = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        known = self.known.get(name)
        if known and known[1:] == identity:
            return str(known[0])
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if time.time_ns() - status.st_ctime_ns > CLOCK_NS:
            self.known[name] = [sha256, *identity]
        return sha256

    def save(self) -> None:
        """Store the digests. If that fails, later processes compute them again."""
        there = {name: known for name, known in self.known.items() if (self._folder / name).exists()}
        with suppress(OSError):
            write_whole(self._file, json.dumps(there))


def _parts(path: Path, size: int) -> Iterator[tuple[int, int, str]]:
    """Yield the start, length and SHA-256 of each part of a file."""
    with path.open("rb") as file:
        start = 0
        while part := file.read(size):
            yield start, len(part), _digest(part)
            start += len(part)


def _read(path: Path, start: int, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(length)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_in(key: str) -> str:
    return key.rpartition("-")[2]


def _fence_of(key: str) -> int:
    """Return the fence in the name of a part; -1 if it is not the name of a part."""
    fence = key.rpartition("/")[2].partition("-")[0]
    return int(fence) if fence.isdecimal() else -1
