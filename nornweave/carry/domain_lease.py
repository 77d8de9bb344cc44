"""The writer's lock of a domain on several machines: a lease, and the domain's files, which move with it.

Workers share no disk. Whoever takes the lease gets the files that the last holder committed: the lease's row names them
with their SHA-256, and they lie on object storage, or in PostgreSQL (``carry/postgresql/carrier.py``). Segments and the
working file are nearly all bytes of a domain: they stay there until somebody reads them, and a commit names them again.
It writes the files that changed under new names and then the row, under the fence: a holder that has lost the lease can
leave objects behind that nobody names, and nothing else.

While nobody else has committed, the folder of the last holder's machine has those files, and what it wrote since.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self, TypeAlias

from nornweave.carry.lease import Claim
from nornweave.carry.parts import Digests, Objects, join, send, sha256_of
from nornweave.core.errors import DomainBusyError, MissingObjectError, PublicationError, StoreError
from nornweave.core.files.atomic_write import write_whole
from nornweave.core.files.lock import WriterLock, held
from nornweave.index.generations.checksums import checksum_file
from nornweave.index.writing.moving import DOCUMENTS_FILE, WORKING_FILE

log = logging.getLogger(__name__)

FILES = "files"
_COMMIT, _MARK = "commit", ".commit"
"""The name of a commit, and the file with the name of the one that the files of a folder come from."""
_PULL_S = 2.0
"""A writer waits so long at least: another process of its machine may be bringing what was published."""
_LOCAL = (".lock", ".wal", ".tmp")
_READERS = "generations/"
_SEGMENT = re.compile(r"(generations/gen-\d{6,}-\d{3}\.duckdb)(?:\.arrays)?")
Files: TypeAlias = Mapping[str, Mapping[str, Any]]
"""What the row of a lease says of each file: its SHA-256, the object or parts that have it, and what it was made of."""


class DomainLease:
    """Holds a domain's lease and the files in ``folder``; implements ``store.lock.Lock``."""

    shares_files = True

    def __init__(self, lease: Claim, objects: Objects, folder: Path, *, purpose: str, wait_s: float) -> None:
        self._lease = lease
        self._objects = objects
        self._folder = folder
        self._wait_s = wait_s
        # The folder is one process's at a time, also while it waits for the lease.
        self._local = WriterLock(
            folder / "writer.lock", purpose=purpose, wait_s=max(wait_s, _PULL_S), waits_silently=not wait_s
        )
        self._files: Files = {}
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._local)
            state = self._lease.take(self._wait_s)
            stack.callback(self._lease.release)
            self._files = state.get(FILES, {})
            if self._files and not _is_newest_here(self._folder, state):
                _check_out(self._objects, self._folder, self._files)
            self._resources = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._resources:
            try:
                self.commit()
            except (PublicationError, StoreError) as lost:
                if error is None:
                    raise
                log.warning("%s", lost)  # what ended the work matters more

    def bring(self, file: Path) -> None:
        """Bring a file that the last holder left; see ``Lock``."""
        named = self._files.get(file.relative_to(self._folder).as_posix())
        if named is None or file.exists():
            return
        try:
            _fetch(self._objects, named, file)
        except StoreError:
            self._lease.confirm()  # who took the lease meanwhile removes what the row does not name any more
            raise

    def confirm(self) -> None:
        """Return if the lease is still held; see ``Lock``."""
        self._lease.confirm()

    def commit(self, *, overwriting: bool = False) -> None:
        """Store what changed and name it in the lease's row; see ``Lock``."""
        self._lease.confirm()
        stored = {found.key for found in self._objects.list(f"domains/{self._folder.name}")}
        files = self._uploaded(stored)
        if files == self._files:
            return
        mark, name = self._folder / _MARK, secrets.token_hex(8)
        mark.unlink(missing_ok=True)  # if this fails, the next holder begins with what was committed
        self._lease.commit({FILES: files, _COMMIT: name})
        self._files = files
        write_whole(mark, name)
        try:
            self._remove_others(stored)
            if overwriting:
                self._objects.overwrite()
        except PublicationError as error:
            log.warning("what is not needed any more stays: %s", error)

    def _remove_others(self, stored: set[str]) -> None:
        """Remove the objects that nobody names, and nobody can name any more: a commit asks for its own fence."""
        for key in stored.difference(*map(_objects_of, self._files.values())):
            fence = key.rpartition("/")[2].partition("-")[0]
            if fence.isdecimal() and int(fence) <= self._lease.fence:
                self._objects.remove(key)

    def _uploaded(self, stored: set[str]) -> dict[str, Mapping[str, Any]]:
        """Return the files as the row names them; a name holds the fence, so nobody else writes it.

        Args:
            stored: the objects that there are. What was lost is stored anew if its file is here.
        """
        digests = Digests(self._folder)
        found = {name: file for name, file in self._files.items() if _stays_elsewhere(self._folder, name)}
        for path in _files_of(self._folder):
            name, sha256 = path.relative_to(self._folder).as_posix(), digests.of(path)
            known = self._files.get(name)
            if known is None or known["sha256"] != sha256 or not stored.issuperset(_objects_of(known)):
                known = {"sha256": sha256, **self._stored(name, path, sha256, stored)}
            found[name] = known
        digests.save()
        if DOCUMENTS_FILE in found and WORKING_FILE in found:
            found[DOCUMENTS_FILE] = {**found[DOCUMENTS_FILE], "of": found[WORKING_FILE]["sha256"]}
        return found

    def _stored(self, name: str, path: Path, sha256: str, stored: set[str]) -> Mapping[str, Any]:
        """Store a file; the working file in parts, most of which the last holder has stored."""
        prefix = f"domains/{self._folder.name}/{self._lease.fence}-"
        if name == WORKING_FILE:
            known = stored.intersection(self._files.get(name, {}).get("parts", ()))
            return {"parts": send(self._objects, path, prefix, known)}
        self._objects.write(f"{prefix}{sha256}", path)
        return {"object": f"{prefix}{sha256}"}


def _objects_of(file: Mapping[str, Any]) -> Sequence[str]:
    return file.get("parts") or [file["object"]]


class FilesElsewhere:
    """The segments of a domain that its lease's row names, for whoever reads one; implements ``kept.Elsewhere``.

    Args:
        lease: whose row names them; nobody has to hold it. Made when it is first needed, as ``objects``.
        objects: where they lie.
        folder: of the domain on this machine.
    """

    def __init__(self, lease: Callable[[], Claim], objects: Callable[[], Objects], folder: Path) -> None:
        self._lease = lease
        self._objects = objects
        self._folder = folder
        self._files: Files = {}

    def look(self) -> None:
        """Return: what was published is pulled, once a command or a step."""

    def has(self, file: Path) -> bool:
        """Tell whether the row names a file."""
        return self._named(file) is not None

    def fetch(self, file: Path) -> None:
        """Bring a file that the row names."""
        while named := self._named(file):
            with held(self._folder / ".arriving"):
                if file.exists():  # another process has waited for it as well
                    return
                try:
                    _fetch(self._objects(), named, file)
                except StoreError:
                    self._files = {}
                    if self._named(file) == named:  # as the row names it now, not when it was read for another file
                        raise

    def _named(self, file: Path) -> Mapping[str, Any] | None:
        name = file.relative_to(self._folder).as_posix()
        if name not in self._files:
            self._files = self._lease().state().get(FILES, {})
        return self._files.get(name)


def pull_generations(lease: Claim, objects: Objects, folder: Path) -> bool:
    """Bring the published generations of a domain to this machine, without its lease; return whether they are here.

    A process that writes the domain on this machine has newer ones: then nothing is done.
    """
    try:
        with held(folder / ".pulling"), WriterLock(folder / "writer.lock", purpose="pull"):
            while wanted := _published(state := lease.state()):
                if _is_newest_here(folder, state):
                    return True
                try:
                    _check_out(objects, folder, wanted, within=_READERS)
                except StoreError:
                    if _published(lease.state()) == wanted:
                        raise
                else:
                    return True
            return False
    except DomainBusyError:
        return False
    except OSError as error:
        raise StoreError(f"{folder}: what is published could not be brought: {error}") from error


def _is_newest_here(folder: Path, state: Mapping[str, Any]) -> bool:
    """Tell whether a folder holds what was last committed, or more: nobody else has committed since."""
    mark, pointer = folder / _MARK, folder / _READERS / "CURRENT"
    return mark.is_file() and pointer.is_file() and mark.read_text(encoding="ascii") == state.get(_COMMIT)


def _published(state: Mapping[str, Any]) -> Files:
    """Return what readers open, and what says how it was made."""
    files: Files = state.get(FILES, {})
    return {name: file for name, file in files.items() if name.startswith(_READERS) or name == DOCUMENTS_FILE}


def _files_of(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(".") and path.suffix not in _LOCAL:
            yield path


def _check_out(objects: Objects, folder: Path, files: Files, *, within: str = "") -> None:
    """Make a folder hold nothing but ``files``, and all but those that are brought later; the pointer comes last.

    Raises:
        StoreError: a file is missing or damaged on object storage.
    """
    digests = Digests(folder)
    for name, file in sorted(files.items(), key=lambda item: (item[0].endswith("CURRENT"), item[0])):
        path = _below(folder, name)
        is_here = path.is_file() and digests.of(path) == file["sha256"]
        if not is_here and not _is_brought_later(name, files):
            _fetch(objects, file, path)
        elif not is_here and path.is_file():
            path.replace(_earlier(path)) if name == WORKING_FILE else path.unlink()
            path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
    for path in _files_of(folder):
        name = path.relative_to(folder).as_posix()
        if name.startswith(within) and name not in files:
            path.unlink()
    digests.save()


def _is_brought_later(name: str, files: Files) -> bool:
    """Tell whether a file is brought when it is read: a segment, or the working file if its documents are known."""
    if name == WORKING_FILE:
        return bool(files.get(DOCUMENTS_FILE, {}).get("of") == files[WORKING_FILE]["sha256"])
    return _SEGMENT.fullmatch(name) is not None


def _stays_elsewhere(folder: Path, name: str) -> bool:
    """Tell whether a file that is not here is still one of the domain: of a segment, its checksum is here as well."""
    segment = _SEGMENT.fullmatch(name)
    return name == WORKING_FILE or (segment is not None and checksum_file(folder / segment[1]).exists())


def _below(folder: Path, name: str) -> Path:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts:
        raise StoreError(f"the lease of {folder.name!r} names the file {name!r}, which is outside of its folder")
    return folder / pure


def _fetch(objects: Objects, file: Mapping[str, str], path: Path) -> None:
    """Bring a file.

    Raises:
        StoreError: it is missing or damaged on object storage, or that does not answer.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.arriving")
    try:
        if "parts" in file:
            size = join(objects, file["parts"], temporary, [path, _earlier(path)])
        else:
            objects.fetch(file["object"], temporary)
            size = temporary.stat().st_size
    except MissingObjectError as error:
        raise StoreError(f"{error}; the next sync of a machine that has the file stores it anew") from error
    except (PublicationError, OSError) as error:
        raise StoreError(f"{path}: could not be brought: {error}") from error
    log.info("%s: brought, %d bytes", path, size)
    if "object" in file and sha256_of(temporary) != file["sha256"]:  # each part was compared when it came
        temporary.unlink()
        raise StoreError(f"{objects.url}/{_objects_of(file)[0]}: is damaged: not the bytes that were stored")
    _earlier(path).unlink(missing_ok=True)
    path.with_name(f"{path.name}.wal").unlink(missing_ok=True)  # of a writer that was killed here
    temporary.replace(path)


def _earlier(path: Path) -> Path:
    """Return where an earlier copy of a file waits for the later one, which has most of its parts."""
    return path.with_name(f".{path.name}.earlier")
