"""Access to object stores, with deadlines for every request and conditional writes on all kinds."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nornweave.config.workspace import ObjectStoreSettings
from nornweave.core.errors import MissingObjectError, PublicationError, PublisherConflictError
from nornweave.core.files.lock import hold_lock
from nornweave.core.installation import optional

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
