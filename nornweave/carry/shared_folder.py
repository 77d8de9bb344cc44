"""The writer's lock of a domain on several machines: a lease, and the domain's files, which follow it.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nornweave.carry.parts import (
    FORMAT,
    Claim,
    Digests,
    Files,
    Objects,
    StoredFile,
    earlier_copy,
    fetch,
    files_in,
    has_file,
    parts_of,
    prefix_of,
    pull,
    push,
    remove_unnamed,
)
from nornweave.core.errors import DomainBusyError, MissingObjectError, PublicationError, StoreError
from nornweave.core.files.lock import WriterLock, hold_lock
from nornweave.core.files.writing import write_whole
from nornweave.index.generations.checksums import checksum_file
from nornweave.index.writing.moving import DOCUMENTS_FILE, WORKING_FILE

log = logging.getLogger(__name__)

_COMMIT, _MARK = "commit", ".commit"
"""The name of a commit, and the file with the name of the one that the files of a folder come from."""
_PULL_S = 2.0
"""A writer waits so long at least: another process of its machine may be bringing what was published."""
_LOCAL = (".lock", ".wal", ".tmp")
_READERS = "generations/"
_SEGMENT = re.compile(r"(generations/gen-\d{6,}-\d{3}\.duckdb)(?:\.arrays)?")


class DomainLease:
    """Holds a domain's lease and the files in ``folder``. Implements ``store.lock.Lock``."""

    shares_files = True

    def __init__(self, lease: Claim, objects: Objects, folder: Path, *, purpose: str, wait_s: float) -> None:
        self._lease = lease
        self._objects = objects
        self._folder = folder
        self._wait_s = wait_s
        # One process at a time uses the folder, also while it waits for the lease.
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
            self._files = files_in(state, self._objects.url)
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
                log.warning("%s", lost)  # the first error matters more

    def bring(self, file: Path) -> None:
        """Download a file that the last holder saved; do nothing if it is already here or was never saved."""
        named = self._files.get(file.relative_to(self._folder).as_posix())
        if named is None or file.exists():
            return
        try:
            with _translated(file):
                fetch(self._objects, named, file)
        except StoreError:
            self._lease.confirm()  # a new holder would remove files that the row does not name
            raise

    def confirm(self) -> None:
        """Check that the lease is still held."""
        self._lease.confirm()

    def commit(self, *, overwriting: bool = False) -> None:
        """Upload changed files and name them in the lease's row. With ``overwriting``, erase the bytes of old files."""
        self._lease.confirm()
        prefix, digests = prefix_of(self._folder.name), Digests(self._folder)
        paths = {path.relative_to(self._folder).as_posix(): path for path in _files_of(self._folder)}
        pushed = push(self._objects, prefix, self._lease.fence, paths, self._files.values(), digests)
        digests.save()
        files = {name: file for name, file in self._files.items() if _stays_elsewhere(self._folder, name)} | pushed
        if files == self._files:
            return
        mark, name = self._folder / _MARK, secrets.token_hex(8)
        mark.unlink(missing_ok=True)  # if a later step fails, the next holder starts from the last commit
        stated = {name: file.model_dump(mode="json") for name, file in files.items()}
        self._lease.commit({"format": FORMAT, "files": stated, _COMMIT: name})
        self._files = files
        write_whole(mark, name)
        remove_unnamed(self._objects, prefix, self._lease.fence, parts_of(files.values()))
        if overwriting:
            self._objects.overwrite()


class SharedFolder:
    """The folder of a domain that several machines write. Implements ``corpus.SharedFiles``.

    Args:
        folder: the folder of the domain on this machine.
        claim: makes a claim for a purpose. Readers do not need to hold a claim.
        objects: returns the store with the parts of a claim's commits.
        committed: returns the name of the current commit. ``None`` if readers do not check for new commits, because the
            publication is pulled once per command or step.
    """

    def __init__(
        self,
        folder: Path,
        claim: Callable[[str], Claim],
        objects: Callable[[Any], Objects],
        committed: Callable[[], str | None] | None = None,
    ) -> None:
        self._folder = folder
        self._claim = claim
        self._objects = objects
        self._committed = committed
        self._seen: str | None = None
        self._files: Files = {}

    def lock(self, purpose: str, wait_s: float) -> DomainLease:
        """Return the writer's lock. ``purpose`` is shown to those who wait; ``wait_s`` is how long to wait."""
        claim = self._claim(purpose)
        return DomainLease(claim, self._objects(claim), self._folder, purpose=purpose, wait_s=wait_s)

    def look(self) -> None:
        """Download a newer publication if there is one and ``committed`` is given.

        Segments are downloaded when they are read.
        """
        if self._committed and (committed := self._committed()) != self._seen and self.pull():
            self._files, self._seen = {}, committed

    @cached_property
    def _reader(self) -> Claim:
        return self._claim("read")

    def has(self, file: Path) -> bool:
        """Tell whether the last commit names a file."""
        return self._named(file) is not None

    def fetch(self, file: Path) -> None:
        """Download a file of the last commit."""
        while named := self._named(file):
            with hold_lock(self._folder / ".arriving"):
                if file.exists():  # another process has waited for it as well
                    return
                try:
                    with _translated(file):
                        fetch(self._objects(self._reader), named, file)
                except StoreError:
                    self._files = {}
                    if self._named(file) == named:  # the name may have changed while waiting
                        raise

    def _named(self, file: Path) -> StoredFile | None:
        name = file.relative_to(self._folder).as_posix()
        if name not in self._files:
            self._files = files_in(self._reader.state(), str(self._folder))
        return self._files.get(name)

    def pull(self) -> bool:
        """Download the published generations without holding a claim. Return whether they are on this machine now.

        Do nothing while a process on this machine writes the domain, because its generations are newer.
        """
        folder, claim, objects = self._folder, self._reader, self._objects(self._reader)
        try:
            with hold_lock(folder / ".pulling"), WriterLock(folder / "writer.lock", purpose="pull"):
                while wanted := _reader_files(files_in(state := claim.state(), objects.url)):
                    if _is_newest_here(folder, state):
                        return True
                    try:
                        _check_out(objects, folder, wanted, within=_READERS)
                    except StoreError:
                        if _reader_files(files_in(claim.state(), objects.url)) == wanted:
                            raise
                    else:
                        return True
                return False
        except DomainBusyError:
            return False
        except OSError as error:
            raise StoreError(f"{folder}: what is published could not be brought: {error}") from error


def _is_newest_here(folder: Path, state: Mapping[str, Any]) -> bool:
    """Tell whether a folder has the files of the last commit. It may also have newer, uncommitted files."""
    mark, pointer = folder / _MARK, folder / _READERS / "CURRENT"
    return mark.is_file() and pointer.is_file() and mark.read_text(encoding="ascii") == state.get(_COMMIT)


def _reader_files(files: Files) -> Files:
    """Return the files that readers need: those of generations, and the table of documents."""
    return {name: file for name, file in files.items() if name.startswith(_READERS) or name == DOCUMENTS_FILE}


def _files_of(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(".") and path.suffix not in _LOCAL:
            yield path


def _check_out(objects: Objects, folder: Path, files: Files, *, within: str = "") -> None:
    """Make a folder equal to ``files``, except for files that are downloaded when they are read.

    Other files are removed, but only those whose path begins with ``within``.

    Raises:
        StoreError: a file is missing or damaged on object storage.
    """

    def is_later(name: str) -> bool:
        """Tell whether a file is brought when it is read: a segment, or the working file if its documents are known."""
        return DOCUMENTS_FILE in files if name == WORKING_FILE else _SEGMENT.fullmatch(name) is not None

    digests = Digests(folder)
    for name in filter(is_later, files):
        if (path := folder / name).is_file() and not has_file(path, files[name], digests):
            path.replace(earlier_copy(path)) if name == WORKING_FILE else path.unlink()
            path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
    digests.save()
    with _translated(folder):
        pull(objects, folder, files, is_later=is_later)
    for path in _files_of(folder):
        name = path.relative_to(folder).as_posix()
        if name.startswith(within) and name not in files:
            path.unlink()


def _stays_elsewhere(folder: Path, name: str) -> bool:
    """Tell whether a missing file still belongs to the domain.

    That is so for the working file, and for a segment whose checksum is on this machine.
    """
    segment = _SEGMENT.fullmatch(name)
    return name == WORKING_FILE or (segment is not None and checksum_file(folder / segment[1]).exists())


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except MissingObjectError as error:
        raise StoreError(f"{error}; the next sync of a machine that has the file stores it anew") from error
    except (PublicationError, OSError) as error:
        raise StoreError(f"{path}: could not be brought: {error}") from error
