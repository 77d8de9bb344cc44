"""The branch, tag or commit that ``ref`` names among what ``git ls-remote`` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nornweave.connect.git.network import Network
from nornweave.core.errors import SourceUnavailableError

COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
HEAD = "HEAD"
_PEELED = "^{}"
# What git allows in names of refs, and nothing that a refspec or a shell would read otherwise.
_NAME = re.compile(r"(?![-/.])(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|\.$|/$))[^\x00-\x20\x7f~^:?*\[\\]+")


@dataclass(frozen=True, slots=True)
class RemoteRef:
    """A whole name, such as ``refs/heads/main``, and the commit behind it."""

    name: str
    commit: str


def find_ref(network: Network, ref: str) -> RemoteRef:
    """Ask a server what a ref points at.

    Raises:
        SourceUnavailableError: why the repository cannot be read; it has no such ref.
    """
    is_commit = COMMIT_ID.fullmatch(ref) is not None
    said = network.list_refs(*candidates(HEAD if is_commit else ref))
    remote = RemoteRef(ref, ref) if is_commit else choose(ref, said)
    if remote is None:
        advice = "push something, or correct 'ref'; a commit needs all of its digits"
        raise SourceUnavailableError(f"{network.address.shown}: it has no branch or tag {ref!r} (any more); {advice}")
    return remote


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


def _commits(listing: str) -> Iterator[tuple[str, str]]:
    for line in listing.splitlines():
        commit, _, name = line.partition("\t")
        if name and not commit.startswith("ref: "):
            yield name, commit
