"""A source of committed files: a git repository, or a folder of one; and how far a local one is ahead of what was read.

Files of the work tree are compared here and not by git, which would start the programs that a repository names as
filters.

Uncommitted changes are not ingested: a document is what a commit says, so its revision can be cited.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Self, TypeAlias

from nornweave.connect.files.skip import Rules, tree_of_paths
from nornweave.connect.files.source import file_document, file_version, is_asked_for
from nornweave.connect.files.walk import LINK
from nornweave.connect.git.address import check_template, file_url, template_of
from nornweave.connect.git.blame import is_own_repository
from nornweave.connect.git.history import ADDRESS, CommitHistory, history_document
from nornweave.connect.git.program import (
    Blobs,
    GitFailedError,
    check_version,
    origin_of,
    run_git,
    split_fields,
    stream_git,
)
from nornweave.connect.git.tree import TreeFile, leads_outside, list_tree
from nornweave.connect.protocol import Lag
from nornweave.core.errors import DocumentError, SourceUnavailableError, TransientDocumentError
from nornweave.core.files.paths import OwnFiles, Withheld, check_globs, is_text, printable, read_regular
from nornweave.core.text.dates import since_1970
from nornweave.core.text.decode import MAX_BYTES, check_size
from nornweave.core.types import Document, Domain, Entry, Listing, Skip, SourceId, freeze, is_of_history
from nornweave.read.blocks.styles import with_own_files
from nornweave.read.isolated import parse_apart

DEADLINE_S = 2.0
"""Of one call of git."""
MAX_FILES = 20_000
"""Of a work tree with more, whether they were changed is not told."""
_COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# As ``git ls-files --stage --debug -z`` prints a file of a work tree, no submodule and no link.
_TRACKED = re.compile(
    rb"100(?:644|755) ([0-9a-f]+) 0\t([^\0]+)\0  ctime: \d+:\d+\n  mtime: (\d+):(\d+)\n  dev: [^\n]*\n  uid: [^\n]*\n"
    rb"  size: (\d+)\tflags: ([0-9a-f]+)\n"
)
_is_own = lru_cache(maxsize=256)(is_own_repository)  # saves five of eight calls of git
_NOT_LOOKED_AT = 0x40008000
"""Flags of a file that git takes as unchanged: left out of a sparse work tree, or assumed so."""


def lag_of(root: Path, ref: str, commit: str) -> Lag | None:
    """Return how far a branch is ahead of a commit; ``None`` if git does not answer in time."""
    if not _COMMIT_ID.fullmatch(commit) or not _is_own(root):
        return None
    asked = ("rev-list", "--count", "--first-parent", f"{commit}..{ref}", "--")
    try:
        commits = int(run_git(root, *asked, timeout_s=DEADLINE_S))
    except (GitFailedError, SourceUnavailableError, ValueError):
        return None
    return Lag(commits, _is_changed(root))


def _is_changed(root: Path) -> bool | None:
    """Tell whether files below a folder differ from the checked-out commit; ``None`` if git cannot answer."""
    try:
        listed = run_git(root, "ls-files", "--stage", "--debug", "-z", timeout_s=DEADLINE_S)
        if not 0 < listed.count(b"\0") <= MAX_FILES:  # a bare repository lists none
            return None
        if run_git(root, "diff-index", "--cached", "--name-only", "-z", "HEAD", "--", ".", timeout_s=DEADLINE_S):
            return True
    except (GitFailedError, SourceUnavailableError):
        return None
    return any(_differs(root, *match.groups()) for match in _TRACKED.finditer(listed))


def _differs(root: Path, blob: bytes, path: bytes, seconds: bytes, fraction: bytes, size: bytes, flags: bytes) -> bool:
    """Tell whether a file differs from git's version. The file is read only if its time changed."""
    if int(flags, 16) & _NOT_LOOKED_AT:
        return False
    place = os.path.join(os.fsencode(root), path)  # noqa: PTH118 - bytes
    try:
        found = os.lstat(place)
        if (found.st_mtime_ns, found.st_size) == (int(seconds) * 10**9 + int(fraction), int(size)):
            return False
        content = read_regular(os.fsdecode(place), MAX_BYTES, follows=False)
    except (OSError, DocumentError):
        return True
    kind = hashlib.sha1 if len(blob) == 40 else hashlib.sha256  # as git names objects
    return kind(b"blob %d\0" % len(content) + content).hexdigest() != blob.decode()


Provide: TypeAlias = Callable[[Collection[str]], Mapping[str, int]]
"""Makes blobs available that a partial clone may lack; returns the sizes of those that are there then."""
_NAME = re.compile(r"[\w./:@+-]+", re.ASCII)
_OBJECT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LINK_MODE, _SUBMODULE_MODE, _PROGRAM_MODE = "120000", "160000", "100755"
_EMPTY_BEFORE_COMMIT = 2  # fewer occur between names, and no name is empty
_COMMIT = "%x00" * _EMPTY_BEFORE_COMMIT + "%H%x00%h%x00%at%x00%aN%x00%<(300,trunc)%s"


@dataclass(frozen=True, slots=True)
class _Commit:
    revision: str
    authored_at: datetime | None
    author: str
    subject: str = ""
    sha: str = ""


_NO_COMMIT = _Commit("", None, "")


class UnreadableRepositoryError(SourceUnavailableError):
    """Git cannot read the repository: the folder is not a repository, it is damaged, or it lacks the commit."""


@dataclass(frozen=True, slots=True)
class GitSource:
    """The files of one commit.

    The folder may be a work tree, a bare repository or a folder inside a work tree. In the last case paths are relative
    to that folder. ``close`` ends the git process that ``fetch`` starts. Without ``close`` the process ends together
    with this object.

    Attributes:
        ref: the branch, tag or commit to read.
        timeout_s: the time limit for one call of git, in seconds.
        web_url: the template for the web addresses of the files. The default is derived from the remote ``origin``.
        origin: the address of the repository. The default is the address of the remote ``origin``.
        shown: the name of the repository in messages. The default is its folder.
        provide: for a partial clone, the function that fetches missing files and returns their sizes.
        history: the commits to read as documents; ``None`` to read no commits.
        own: the workspace's own files, which are never read.
    """

    id: SourceId
    domain: Domain
    root: Path
    include: tuple[str, ...] = field(default=(), kw_only=True)
    only: tuple[str, ...] = field(default=(), kw_only=True)
    exclude: tuple[str, ...] = field(default=(), kw_only=True)
    ref: str = field(default="HEAD", kw_only=True)
    timeout_s: float = field(default=60.0, kw_only=True)
    web_url: str | None = field(default=None, kw_only=True)
    origin: str | None = field(default=None, kw_only=True)
    shown: str | None = field(default=None, kw_only=True)
    provide: Provide | None = field(default=None, kw_only=True)
    own: OwnFiles | None = field(default=None, kw_only=True)
    history: CommitHistory | None = field(default=None, kw_only=True)
    _blobs: Blobs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_globs(include=self.include, only=self.only, exclude=self.exclude)  # broken ones are said at once
        if self.web_url is not None:
            check_template(self.web_url)
        object.__setattr__(self, "_blobs", Blobs(self.root, timeout_s=self.timeout_s))

    @property
    def version(self) -> str:
        # The template changes the documents' web addresses.
        # The globs count because files that include names are read whatever they hold.
        return ",".join(("git-4", file_version(), *([self.web_url] if self.web_url else []), *self.include, *self.only))

    def list(self) -> Listing:
        """List the committed files by path. The gate of a file is its blob id.

        The revision, date and author of a file are those of the last commit that changed the file. In a very long
        history this commit may not be found within ``timeout_s``. The three values are then missing. They are also
        missing for files that were last changed by the oldest commits of a shallow clone, because those commits seem to
        add every file.

        Raises:
            SourceUnavailableError: git or the repository is missing, there is no commit, ``ref`` is unknown, or git
                does not answer in time.
        """
        commit, prefix = self._commit(), self._prefix()
        files, skipped = self._wanted(self._tree(commit, prefix))
        edge = self._edge()
        history = self._history(commit, prefix, {file.path for file in files}, edge)
        template = self.web_url or template_of(
            origin_of(self.root, timeout_s=self.timeout_s) if self.origin is None else self.origin
        )
        urls = {file.path: file_url(template, commit, prefix + file.path) for file in files} if template else {}
        read = self._read_commits(self.history, commit, template) if self.history else None
        brought_by = read[0] if read else None
        entries = [_entry(file, history.get(file.path, _NO_COMMIT), urls.get(file.path), brought_by) for file in files]
        entries += read[1] if read else ()
        undated = sum(entry.revision is None for entry in entries)
        notice = f"a shallow clone: {undated:,} of {len(files):,} files have no date; what changed them is not in it"
        return Listing(
            tuple(sorted(entries, key=lambda entry: entry.path)),
            tuple(sorted(skipped, key=lambda skip: skip.path)),
            notices=(notice,) if edge else (),
            commit=commit,
        )

    def fetch(self, entry: Entry) -> bytes:
        """Read the listed blob, even if the branch has a newer commit by now.

        Raises:
            DocumentError: the blob is larger than ``MAX_BYTES``, or this source did not list it.
            TransientDocumentError: the repository does not have the blob, or git does not answer.
        """
        if self.history and is_of_history(entry.gate):
            return self.history.fetch(entry)
        if not _OBJECT_ID.fullmatch(entry.gate):
            raise DocumentError(f"{entry.gate!r} is not a git blob id; list the source again")
        check_size(entry.size)
        raw = self._blobs.read(entry.gate)
        if raw is None:
            raise TransientDocumentError(
                f"the repository has no blob {entry.gate}: a partial clone, or it was pruned; run 'git fetch --refetch'"
            )
        check_size(len(raw))
        if self.domain is not Domain.DOCUMENTATION or entry.revision is None:
            return raw
        return with_own_files(entry.path, raw, lambda path: self._beside(f"{entry.revision}:{self._prefix()}{path}"))

    def _beside(self, name: str) -> bytes | None:
        """Return the blob ``name``, a file to which a listed page links; ``None`` if it cannot be read."""
        with suppress(DocumentError):
            return self._blobs.read(name) if _NAME.fullmatch(name) else None
        return None

    def parse(self, entry: Entry, raw: bytes) -> Document:
        """Parse a file's bytes. The document's date is that of the file's last commit."""
        if is_of_history(entry.gate):
            return history_document(self.id, entry, raw)
        how = {"is_dated": True, "is_asked_for": is_asked_for(self, entry.path)}
        return parse_apart(file_document, self.id, entry, raw, domain=self.domain, **how)

    def close(self) -> None:
        """End the git processes that ``fetch`` uses."""
        self._blobs.close()
        if self.history:
            self.history.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _commit(self) -> str:
        if not self.root.exists():
            raise self._unavailable("the folder is missing; mount or clone it, or correct 'path'")
        check_version(timeout_s=self.timeout_s)
        self._check_place()
        unknown = "the ref is unknown; name a branch, tag or commit that the repository has"
        if self.ref.startswith("-") or "\0" in self.ref:
            raise self._unavailable(unknown)
        if self.ref == "HEAD":
            unknown = "the repository has no commits yet; commit something, or use type files"
        return self._git("rev-parse", "--verify", "--quiet", f"{self.ref}^{{commit}}", failure=unknown).strip()

    def _check_place(self) -> None:
        try:
            reason = leads_outside(self.root, timeout_s=self.timeout_s)
        except (GitFailedError, OSError) as error:
            missing = "it is not a git repository; correct 'path' or use type files"
            raise self._unavailable(f"{missing} (git: {error})") from error
        if reason:
            raise self._unavailable(reason)

    def _prefix(self) -> str:
        """Return the path of the folder inside the repository, with a slash at the end; empty for the top folder."""
        return self._git("rev-parse", "--show-prefix", failure="its place in the repository is unknown").rstrip("\n")

    def _tree(self, commit: str, prefix: str) -> Iterator[TreeFile]:
        tree = self._git(
            *("rev-parse", "--verify", "--quiet", f"{commit}:{prefix}"),
            failure=f"the folder {prefix!r} is not in commit {commit[:12]}; commit it, or use type files",
        ).strip()
        try:
            is_whole = self.provide is None
            yield from list_tree(self.root, "--full-tree", tree, timeout_s=self.timeout_s, with_sizes=is_whole)
        except GitFailedError as error:
            reason = "commit {} cannot be listed: a partial clone, or damaged; run 'git fetch --refetch' or 'git fsck'"
            raise self._unavailable(f"{reason.format(commit[:12])} (git: {error})") from error

    def _wanted(self, files: Iterable[TreeFile]) -> tuple[tuple[TreeFile, ...], tuple[Skip, ...]]:
        """Return the files to read, and a skip for each path that is left out.

        In a partial clone, missing files are fetched to learn their sizes.
        """
        if self.provide is None:
            return self._select(files)
        listed = tuple(files)
        taken, _ = self._select(listed)
        sizes = self.provide({file.blob for file in taken})
        return self._select(replace(file, size=sizes.get(file.blob, 0)) for file in listed)

    def _select(self, files: Iterable[TreeFile]) -> tuple[tuple[TreeFile, ...], tuple[Skip, ...]]:
        """Return the files that the rules accept, and a skip for each path that they leave out."""
        listed = tuple(files)
        rules = Rules(
            self.domain,
            tree_of_paths(file.path for file in listed),
            include=self.include,
            only=self.only,
            exclude=self.exclude,
            withheld=Withheld(str(self.root), self.own),
            is_committed=True,
        )
        directories: dict[str, str | None] = {}
        taken: list[TreeFile] = []
        skipped: list[Skip] = []
        for file in listed:
            reason = _left_out_above(file.path, rules, directories) or self._reason(file, rules)
            if reason:
                skipped.append(Skip(printable(file.path), reason))
            else:
                taken.append(file)
        return tuple(taken), tuple(skipped)

    def _reason(self, file: TreeFile, rules: Rules) -> str | None:
        if not is_text(file.path):
            return "name: the file name is not valid UTF-8; rename it"
        if file.mode == _SUBMODULE_MODE:
            return "submodule: a repository of its own; declare it as a source of its own"
        if file.mode == _LINK_MODE:
            target = (self._blobs.read(file.blob) or b"") if self.provide is None else b""
            return f"{LINK}{printable(target.decode('utf-8', 'surrogateescape'))}"
        return rules.skip_file(file.path, file.size, is_program=file.mode == _PROGRAM_MODE)

    def _read_commits(
        self, history: CommitHistory, commit: str, template: str | None
    ) -> tuple[Mapping[str, str], Sequence[Entry]]:
        """Return for each commit the one along first parents that brought it, and the entries of the history."""
        try:
            ancestry = history.ancestry(commit)
            return ancestry.brought_by(), [*history.entries(ancestry, template)]
        except GitFailedError as error:
            raise self._unavailable(f"its commits cannot be listed (git: {error})") from error

    def _edge(self) -> frozenset[str]:
        """Return the oldest commits of a shallow clone. The result is empty for a complete clone."""
        place = self._git("rev-parse", "--git-path", "shallow", failure="its place in the repository is unknown")
        try:
            return frozenset((self.root / place.rstrip("\n")).read_text(encoding="ascii").split())
        except FileNotFoundError:
            return frozenset()
        except (OSError, ValueError) as error:
            raise self._unavailable(f"the list of commits that it lacks cannot be read ({error})") from error

    def _history(self, commit: str, prefix: str, wanted: set[str], edge: frozenset[str]) -> dict[str, _Commit]:
        """Return a mapping from path to its last commit. Git's log is read until a commit is found for each path."""
        # -c lists what a merge changed against all its parents: a conflict settled by hand belongs to the merge.
        arguments = ["log", "-z", "-c", "--name-only", "--no-renames", "--no-ext-diff", f"--format={_COMMIT}", commit]
        if prefix:
            arguments += ["--", "."]
        found: dict[str, _Commit] = {}
        stream = stream_git(self.root, *arguments, timeout_s=self.timeout_s)
        try:
            for path, last in _parse_history(stream, edge):
                relative = path.removeprefix(prefix)
                if relative in wanted and relative not in found:
                    found[relative] = last
                    if len(found) == len(wanted):
                        break
        except GitFailedError:
            return found  # a name that is longer than any path: the rest of the history is unknown
        finally:
            stream.close()
        return found

    def _git(self, *arguments: str, failure: str) -> str:
        try:
            answer = run_git(self.root, *arguments, timeout_s=self.timeout_s)
        except GitFailedError as error:
            raise self._unavailable(f"{failure} (git: {error})") from error
        return answer.decode("utf-8", "surrogateescape")

    def _unavailable(self, reason: str) -> UnreadableRepositoryError:
        place = self.shown or str(self.root)
        return UnreadableRepositoryError(f"source {self.id!r}: {place!r} at {self.ref!r}: {reason}")


def _left_out_above(path: str, rules: Rules, known: dict[str, str | None]) -> str | None:
    """Return why a directory above a path is left out; ``None`` if all are read. The outermost such directory decides.

    The answers for directories are cached in ``known``.
    """
    end = path.find("/")
    while end >= 0:
        directory = path[:end]
        if directory not in known:
            known[directory] = rules.skip_directory(directory)
        if reason := known[directory]:
            return reason
        end = path.find("/", end + 1)
    return None


def _entry(file: TreeFile, last: _Commit, url: str | None, brought_by: Mapping[str, str] | None) -> Entry:
    read = {} if brought_by is None else {"last_change": last.subject or None, "brought_by": brought_by.get(last.sha)}
    return Entry(
        path=file.path,
        gate=file.blob,
        size=file.size,
        updated_at=last.authored_at,
        revision=last.revision or None,
        metadata=freeze({"author": last.author or None, "url": url, **read}),
    )


def _parse_history(stream: Iterable[bytes], edge: frozenset[str]) -> Iterator[tuple[str, _Commit]]:
    """Parse ``git log -z --name-only -c``. Yield each path with its commit. Commits in ``edge`` count as unknown.

    In the output two or more empty fields begin a commit, and the five fields of the commit follow. Then come the names
    of its files: after a line feed in an ordinary commit, after one empty field in a merge.
    """
    fields = split_fields(stream)
    commit, empty, is_first = _NO_COMMIT, 0, False
    for field_ in fields:
        if not field_:
            empty += 1
            continue
        if empty >= _EMPTY_BEFORE_COMMIT:
            revision, moment, author, subject = (next(fields, "") for _ in range(4))
            own = _Commit(revision, since_1970(moment), author, ADDRESS.sub("", subject).strip(), field_)
            commit, is_first = _NO_COMMIT if field_ in edge else own, True
        else:
            yield field_.removeprefix("\n") if is_first and not empty else field_, commit
            is_first = False
        empty = 0
