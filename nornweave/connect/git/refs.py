"""The branch, tag or commit that ``ref`` names among what ``git ls-remote`` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nornweave.connect.git.network import Network
from nornweave.core.errors import SourceUnavailableError

COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
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


def find_ref(network: Network, ref: str) -> tuple[RemoteRef, Network]:
    """Ask a server what a ref points at; return also the way there, which is another one after a redirect.

    Raises:
        SourceUnavailableError: why the repository cannot be read; it has no such ref.
    """
    is_commit = COMMIT_ID.fullmatch(ref) is not None
    said, way = network.list_refs(*candidates(HEAD if is_commit else ref))
    remote = RemoteRef(ref, ref) if is_commit else choose(ref, said)
    if remote is None:
        branches, _ = way.list_refs()
        raise SourceUnavailableError(f"{way.address.shown}: {unknown_ref(ref, branches)}")
    return remote, way


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
