"""The branch, tag or commit that ``ref`` names among what ``git ls-remote`` prints."""

from __future__ import annotations

import re

from nornweave.connect.git.network import Network
from nornweave.core.errors import SourceUnavailableError

COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PEELED = "^{}"
# What git allows in names of refs, and nothing that a refspec or a shell would read otherwise.
_NAME = re.compile(r"(?![-/.])(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|\.$|/$))[^\x00-\x20\x7f~^:?*\[\\]+")


def find_ref(network: Network, ref: str) -> tuple[str, str]:
    """Ask a server what a ref points at; return its whole name, such as ``refs/heads/main``, and the commit behind it.

    Raises:
        SourceUnavailableError: why the repository cannot be read; it has no such ref.
    """
    if COMMIT_ID.fullmatch(ref):
        network.list_refs("HEAD")
        return ref, ref
    # A signed or annotated tag is an object of its own; with "^{}" comes the commit that it is about.
    listing = network.list_refs(*(each for name in _names(ref) for each in (name, f"{name}{_PEELED}")))
    if found := choose(ref, listing):
        return found
    advice = "push something, or correct 'ref'; a commit needs all of its digits"
    raise SourceUnavailableError(f"{network.address.shown}: it has no branch or tag {ref!r} (any more); {advice}")


def is_name(ref: str) -> bool:
    """Tell whether git would take it as the name of a branch or tag."""
    return _NAME.fullmatch(ref) is not None


def choose(ref: str, listing: str) -> tuple[str, str] | None:
    """Return the name and the commit that are meant among what ``git ls-remote`` prints; ``None`` if there is none."""
    pairs = (line.partition("\t") for line in listing.splitlines())
    commits = {name: commit for commit, _, name in pairs}
    name = next((each for each in _names(ref) if each in commits), None)
    return (name, commits.get(f"{name}{_PEELED}", commits[name])) if name else None


def _names(ref: str) -> tuple[str, ...]:
    """Return the whole names that a ref may stand for: a branch goes before a tag of the same name."""
    return (ref,) if ref == "HEAD" or ref.startswith("refs/") else (f"refs/heads/{ref}", f"refs/tags/{ref}")
