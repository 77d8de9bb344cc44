"""Work in a clone that this process holds: fetch what is missing, repair what a killed git has left.

A ref is kept under a name of its own, whatever it points at upstream: force-pushes, renames and deletions move or end
it, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from nornweave.connect.git.network import FETCH_S, DamagedCloneError, Network
from nornweave.connect.git.program import GitFailedError, git_command, git_environment, run_git
from nornweave.connect.git.tree import MAX_FILES
from nornweave.connect.git.watched import Bounds, TooLargeError, run_watched
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.files.atomic_write import write_whole
from nornweave.core.types import digest

MANY_PACKS = 50
"""Every fetch leaves one or two packs; so many are put into one."""
_LOCAL_S = 300.0
_SIZES_BYTES = 128 * MAX_FILES
_COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(slots=True)
class OpenClone:
    """A clone that this process may write.

    Attributes:
        lock: the descriptor that holds it.
        selection: names what is read of it.
        looked_up: the commit that the wanted ref points at upstream; empty before that is known.
    """

    repository: Path
    network: Network
    max_bytes: int
    lock: int
    selection: str
    looked_up: str = ""

    def update(self, ref: str) -> str:
        """Fetch what a ref points at, unless it is here; return the commit.

        A commit that is here needs no network. A branch or tag that did not move needs one request.

        Raises:
            DamagedCloneError: the clone cannot be used; ``start_anew`` helps.
            SourceUnavailableError: why the repository cannot be read, and what to do.
        """
        self._prepare()
        kept = self._kept(ref)
        if _COMMIT_ID.fullmatch(ref) and kept:
            return kept
        remote, self.network = find_ref(self.network, ref)
        self.looked_up = remote.commit
        if kept is None or remote.commit != kept:
            self._refuse_known(remote)
            self.network.fetch(self.repository, [f"+{remote.name}:{_local_name(ref)}"], self._bounds)
            kept = self._kept(ref)
        if kept is None:
            raise DamagedCloneError(f"what {ref!r} points at did not arrive")
        return kept

    def provide(self, blobs: Collection[str]) -> Mapping[str, int]:
        """Fetch files that are not here; return the sizes of all that are here then, by object id.

        Raises:
            DamagedCloneError: the clone cannot be used.
            SourceUnavailableError: why they cannot be fetched, and what to do.
        """
        sizes = self._sizes(blobs)
        missing = sorted(set(blobs) - sizes.keys())
        if missing:
            self.network.fetch_blobs(self.repository, missing, self._bounds)
            sizes = self._sizes(blobs)
        if len(list(self.repository.glob("objects/pack/*.pack"))) > MANY_PACKS:
            self.network.repack(self.repository, self._bounds)
        return sizes

    def start_anew(self) -> None:
        """Remove everything that was fetched."""
        shutil.rmtree(self.repository, ignore_errors=True)

    def give_up(self) -> None:
        """Remove everything that was fetched, and remember what was too large."""
        self.start_anew()
        with suppress(OSError):
            write_whole(self._note, json.dumps({"commit": self.looked_up, "max_bytes": self.max_bytes}))

    @property
    def _bounds(self) -> Bounds:
        return Bounds(FETCH_S, self.repository, self.max_bytes, inherited=(self.lock,))

    def _prepare(self) -> None:
        """Remove what a killed git has left; make a repository where nothing was fetched yet."""
        remove_leftovers(self.repository)
        if (self.repository / "HEAD").is_file() and not self.is_empty:
            return
        self.start_anew()
        try:
            run_git(Path("/"), "init", "--quiet", "--bare", "--template=", str(self.repository), timeout_s=_LOCAL_S)
        except GitFailedError as error:
            raise SourceUnavailableError(
                f"{self.repository}: it cannot be made ({error}); let data_dir be written, and make room"
            ) from error

    def _kept(self, ref: str) -> str | None:
        """Return the commit that was fetched for a ref."""
        arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{_local_name(ref)}^{{commit}}")
        try:
            return run_git(self.repository, *arguments, timeout_s=_LOCAL_S).decode("ascii", "replace").strip()
        except GitFailedError:
            return None

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing was fetched yet."""
        objects = self.repository / "objects"
        return not any(objects.glob("pack/*.idx")) and not any(objects.glob("??/*"))

    @property
    def _note(self) -> Path:
        return self.repository.parent / f"too-large-{self.selection}.json"

    def _refuse_known(self, remote: RemoteRef) -> None:
        """Do not fetch again every hour what was too large and has not changed."""
        try:
            known = json.loads(self._note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        if known == {"commit": remote.commit, "max_bytes": self.max_bytes}:
            raise TooLargeError(
                f"{self.network.address.shown}: more than {self.max_bytes / 1e6:,.0f} MB when it was last fetched, and "
                "it has not changed; raise 'max_megabytes'"
            )
        self._note.unlink(missing_ok=True)

    def _sizes(self, blobs: Collection[str]) -> dict[str, int]:
        """Ask for the sizes of files that are here; the clone names no remote, so that nothing is fetched."""
        with TemporaryFile() as names:
            names.write("".join(f"{blob}\n" for blob in sorted(set(blobs))).encode("ascii"))
            names.seek(0)
            arguments = ("cat-file", "--buffer", "--batch-check=%(objectname) %(objectsize)")
            command, bounds = (
                git_command(self.repository, *arguments),
                Bounds(_LOCAL_S, max_answer_bytes=_SIZES_BYTES, given=names),
            )
            ended = run_watched(command, git_environment(), bounds, str(self.repository))
        if ended.code:
            raise DamagedCloneError(ended.complaint.strip() or "git cat-file fails")
        lines = (line.split() for line in ended.said.decode("ascii", "replace").splitlines())
        return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}


def find_ref(network: Network, ref: str) -> tuple[RemoteRef, Network]:
    """Ask a server what a ref points at; return also the way there, which is another one after a redirect.

    Raises:
        SourceUnavailableError: why the repository cannot be read; it has no such ref.
    """
    is_commit = _COMMIT_ID.fullmatch(ref) is not None
    said, way = network.list_refs(*candidates(HEAD if is_commit else ref))
    remote = RemoteRef(ref, ref) if is_commit else choose(ref, said)
    if remote is None:
        branches, _ = way.list_refs()
        raise SourceUnavailableError(f"{way.address.shown}: {unknown_ref(ref, branches)}")
    return remote, way


def remove_leftovers(repository: Path) -> None:
    """Remove the unfinished files and locks of a git that was killed; the caller holds the clone."""
    for place, folders, files in os.walk(repository):
        for name in [name for name in folders if name.startswith(("tmp_objdir-", "incoming-"))]:
            shutil.rmtree(f"{place}/{name}", ignore_errors=True)
            folders.remove(name)
        for name in files:
            stem, _, suffix = name.rpartition(".")
            # A pack counts from its index on; ".keep" says that a fetch is under way.
            is_unfinished = place.endswith("/pack") and suffix != "idx" and f"{stem}.idx" not in files
            if suffix in {"lock", "keep"} or name.startswith(("tmp_", ".tmp-")) or is_unfinished:
                with suppress(OSError):
                    os.unlink(f"{place}/{name}")  # noqa: PTH108


def _local_name(ref: str) -> str:
    """Return the name under which a ref is kept: "a" and "a/b" cannot both be names of refs, their digests can."""
    return f"refs/nornweave/{digest(ref)}"


# The branch, tag or commit that ``ref`` names among what ``git ls-remote`` prints.
HEAD = "HEAD"
_SHOWN_BRANCHES = 10
_PEELED = "^{}"
# What git allows in names of refs, and nothing that a refspec or a shell would read otherwise.
_NAME = re.compile(r"(?![-/.])(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|\.$|/$))[^\x00-\x20\x7f~^:?*\[\\]+")
_ABBREVIATED = re.compile(r"[0-9a-f]{7,39}")


@dataclass(frozen=True, slots=True)
class RemoteRef:
    """A whole name, such as ``refs/heads/main``, and the commit behind it."""

    name: str
    commit: str


def is_name(ref: str) -> bool:
    """Tell whether git would take it as the name of a branch or tag."""
    return _NAME.fullmatch(ref) is not None


def candidates(ref: str) -> tuple[str, ...]:
    """Return what to ask a server for, the best first: a branch goes before a tag of the same name."""
    if ref == HEAD:
        return (HEAD,)
    names = (ref,) if ref.startswith("refs/") else (f"refs/heads/{ref}", f"refs/tags/{ref}")
    # A signed or annotated tag is an object of its own; with "^{}" comes the commit that it is about.
    return tuple(each for name in names for each in (name, f"{name}{_PEELED}"))


def choose(ref: str, listing: str) -> RemoteRef | None:
    """Return the ref of a listing that is meant; ``None`` when there is none."""
    commits = dict(_commits(listing))
    for name in candidates(ref):
        if name in commits and not name.endswith(_PEELED):
            return RemoteRef(name, commits.get(f"{name}{_PEELED}", commits[name]))
    return None


def unknown_ref(ref: str, listing: str) -> str:
    """Say that a ref is not there, and which branches are."""
    names = [name.removeprefix("refs/heads/") for name, _ in _commits(listing) if name.startswith("refs/heads/")]
    branches = sorted(name for name in names if is_name(name) and name.isprintable())
    if not branches:
        return "the repository has no branches yet; push something"
    shown = ", ".join(branches[:_SHOWN_BRANCHES])
    more = f" and {len(branches) - _SHOWN_BRANCHES} more" if len(branches) > _SHOWN_BRANCHES else ""
    if ref == HEAD:
        return f"its default branch is not there; name one in 'ref': {shown}{more}"
    advice = "; a commit needs all of its digits" if _ABBREVIATED.fullmatch(ref) else ""
    return f"it has no branch or tag {ref!r} (any more){advice}; correct 'ref', it has the branches {shown}{more}"


def _commits(listing: str) -> Iterator[tuple[str, str]]:
    for line in listing.splitlines():
        commit, _, name = line.partition("\t")
        if name and not commit.startswith("ref: "):
            yield name, commit
