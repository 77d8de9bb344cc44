"""Look around in a folder for what could be a source: repositories, documentation, exports, transcripts, papers."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path, PurePosixPath

from nornweave.connect.git.program import GitFailedError, run_git
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.text.legible import counted
from nornweave.core.types import Domain
from nornweave.read.chunking.languages import language_of

# Deep enough for a folder of checkouts, with a folder of each; what lies deeper counts for the folder at this depth.
MAX_DEPTH = 3
MAX_FOLDERS = 5_000
MAX_PROPOSALS = 40
_GIT_S = 10.0
_LEFT_OUT = frozenset({"node_modules", "venv", "env", "site-packages", "target", "build", "dist", "vendor", "var"})
_DOCUMENTS = frozenset({".md", ".markdown", ".rst", ".html", ".txt"})
_RECORDINGS = frozenset({".vtt", ".srt"})
_GITHUB = re.compile(r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$")
# Files at the top of a project: all below it is one source.
_PROJECT = re.compile(
    r"(?i)(?:readme(?:\..*)?|makefile|cmakelists\.txt|pyproject\.toml|setup\.py|package\.json|composer\.json|cargo\.toml|"
    r"go\.mod|pom\.xml|build\.gradle(?:\.kts)?|gemfile|.*\.(?:sln|gemspec|cabal))\Z"
)
_RESEARCH = frozenset({"research", "papers", "paper", "literature", "bibliography", "publications"})
_FILES = (Domain.CODE, Domain.DOCUMENTATION, Domain.RESEARCH)
"""Domains of folders of files; one folder is proposed for documentation or for research, not for both."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A source that could be read.

    Attributes:
        id: unique among the proposals, as ``nornweave.yaml`` wants it.
        path: relative to the folder that was looked at; ``.`` for itself.
        repository: ``owner/name`` on GitHub that a repository comes from.
        exclude: globs of what is another source.
    """

    id: str
    domain: Domain
    type: str
    path: str
    why: str
    repository: str | None = None
    exclude: tuple[str, ...] = ()


@dataclass(slots=True)
class _Folder:
    """A folder, with what lies in it: file names by suffix, code by language, and folders."""

    path: str
    names: frozenset[str] = frozenset()
    suffixes: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    folders: list[_Folder] = field(default_factory=list)

    def whole(self) -> _Folder:
        """Return the folder with what lies in all below it as its own."""
        whole = _Folder(self.path, self.names, self.suffixes.copy(), self.languages.copy())
        for folder in self.folders:
            inner = folder.whole()
            whole.suffixes += inner.suffixes
            whole.languages += inner.languages
        return whole


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a folder could be read as; ``counted`` holds its files, and those of the offers that it was merged of."""

    domain: Domain
    type: str
    path: str
    counted: _Folder
    why: str = ""


def look_around(root: Path) -> tuple[Proposal, ...]:
    """Return what could be read below a folder, by path; links and hidden folders are not entered.

    Neighbouring folders of code become one source at the folder that holds them; so do those of documents.
    """
    offers = sorted(_offers(_tree(root)), key=lambda offer: PurePosixPath(offer.path).parts)
    proposals: list[Proposal] = []
    for offer in offers[:MAX_PROPOSALS]:
        repository = _github_repository(root / offer.path) if offer.type == "git" else None
        name = _identifier(root, offer.path, offer.domain, {each.id for each in proposals})
        why, exclude = offer.why or _why(offer), tuple(_excluded(offer, offers))
        proposals.append(Proposal(name, offer.domain, offer.type, offer.path, why, repository, exclude))
    return tuple(proposals)


def _tree(root: Path) -> _Folder:
    """Read the folders; what lies below ``MAX_DEPTH`` counts for the one there."""
    found: dict[str, _Folder] = {}
    for seen, (place, folders, files) in enumerate(os.walk(root)):
        if seen >= MAX_FOLDERS:
            break
        path = Path(os.path.relpath(place, root)).as_posix()
        names = frozenset((*folders, *files))
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _LEFT_OUT)
        parts = PurePosixPath(path).parts
        kept = PurePosixPath(*parts[:MAX_DEPTH]).as_posix()
        if kept not in found:
            found[kept] = _Folder(kept, names)
            if parts:
                found[PurePosixPath(kept).parent.as_posix()].folders.append(found[kept])
        found[kept].suffixes.update(PurePosixPath(name).suffix.lower() for name in files)
        found[kept].languages.update(language for name in files if (language := language_of(name)))
    return found.get(".", _Folder("."))


def _offers(folder: _Folder, *, is_research: bool = False) -> list[_Offer]:
    """Return what a folder and those below it could be read as."""
    if special := _special(folder):
        return special
    name = PurePosixPath(folder.path).name.lower()
    is_research = is_research or name in _RESEARCH
    below = [offer for inner in folder.folders for offer in _offers(inner, is_research=is_research)]
    own = _own(folder, is_research=is_research)
    enough = 1 if any(map(_PROJECT.match, folder.names)) else 2 if folder.path != "." else MAX_FOLDERS
    for domain in _FILES:
        merged = [offer for offer in below if (offer.domain, offer.type) == (domain, "files")]
        # One folder is one source of documents: its own files say of which domain.
        others = {Domain.DOCUMENTATION, Domain.RESEARCH} - {domain} if domain is not Domain.CODE else set()
        is_taken = others & (own.keys() | {offer.domain for offer in below if offer.path == folder.path})
        if domain in own or (len(merged) >= enough and not is_taken):
            files = _Folder(
                folder.path, folders=[*filter(None, [own.get(domain)]), *(offer.counted for offer in merged)]
            )
            below = [*(offer for offer in below if offer not in merged), _Offer(domain, "files", folder.path, files)]
    return below


def _special(folder: _Folder) -> list[_Offer]:
    """Return what a folder is as a whole: a repository, an export, recordings."""
    if ".git" in folder.names:
        whole = folder.whole()
        code, documents = f"a git repository, {_code(whole)}", f"the documents in it, {_documents(whole)}"
        return [
            _Offer(Domain.CODE, "git", folder.path, whole, code.removesuffix(", ")),
            _Offer(Domain.DOCUMENTATION, "git", folder.path, whole, documents.removesuffix(", ")),
        ]
    if {"channels.json", "users.json"} <= folder.names:
        return [_Offer(Domain.CONVERSATIONS, "slack", folder.path, folder, "a Slack export")]
    if recordings := sum(folder.suffixes[suffix] for suffix in _RECORDINGS):
        return [_Offer(Domain.CONVERSATIONS, "transcripts", folder.path, folder, counted(recordings, "transcript"))]
    return []


def _own(folder: _Folder, *, is_research: bool) -> dict[Domain, _Folder]:
    """Return the domains of the files that lie directly in a folder, each with these."""
    papers, texts = folder.suffixes[".pdf"], sum(folder.suffixes[suffix] for suffix in _DOCUMENTS)
    documents = Domain.RESEARCH if is_research or papers > texts else Domain.DOCUMENTATION
    files = _Folder(folder.path, suffixes=folder.suffixes, languages=folder.languages)
    return {**({Domain.CODE: files} if folder.languages else {}), **({documents: files} if papers + texts else {})}


def _why(offer: _Offer) -> str:
    whole = offer.counted.whole()
    return _code(whole) if offer.domain is Domain.CODE else _documents(whole)


def _code(whole: _Folder) -> str:
    languages = whole.languages.most_common(1)
    return "".join(f"{counted(whole.languages.total(), 'code file')}, mostly {language}" for language, _ in languages)


def _documents(whole: _Folder) -> str:
    texts = sum(whole.suffixes[suffix] for suffix in _DOCUMENTS)
    papers = whole.suffixes[".pdf"]
    return " and ".join(counted(count, name) for count, name in ((papers, "PDF file"), (texts, "document")) if count)


def _excluded(offer: _Offer, offers: Sequence[_Offer]) -> Iterator[str]:
    """Yield globs of what lies below a source of files and is another one, unless that reads other files."""
    if offer.type != "files":
        return
    for other in offers:
        inside = other.path != offer.path and PurePosixPath(other.path).is_relative_to(offer.path)
        if inside and (other.type != "files" or Domain.CODE not in {offer.domain, other.domain}):
            yield f"/{PurePosixPath(other.path).relative_to(offer.path)}/**"


def _identifier(root: Path, path: str, domain: Domain, taken: set[str]) -> str:
    name = root.resolve().name if path == "." else path
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "source"
    suffix = {Domain.DOCUMENTATION: "-docs", Domain.CONVERSATIONS: "-talk", Domain.RESEARCH: "-papers"}.get(domain, "")
    first = slug if slug.endswith(suffix.removeprefix("-")) else f"{slug}{suffix}"
    return next(each for each in numbered(first) if each not in taken)


def numbered(name: str) -> Iterator[str]:
    """Yield a name, and then the same with numbers from 2."""
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def _github_repository(folder: Path) -> str | None:
    try:
        url = run_git(folder, "config", "--get", "remote.origin.url", timeout_s=_GIT_S).decode("utf-8", "replace")
    except (GitFailedError, SourceUnavailableError):
        return None
    match = _GITHUB.search(url.strip())
    return match[1] if match else None
