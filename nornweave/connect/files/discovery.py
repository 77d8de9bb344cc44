"""Look around in a folder for what could be a source: repositories, documentation, exports, transcripts, papers."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from nornweave.connect.git.program import GitFailedError, run_git
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.text.legible import counted
from nornweave.core.types import Domain
from nornweave.read.chunking.languages import language_of

# Deep enough for a folder of checkouts, with a folder of each; bounded, because it may be started anywhere.
MAX_DEPTH = 3
MAX_FOLDERS = 5_000
MAX_PROPOSALS = 40
_GIT_S = 10.0
_LEFT_OUT = frozenset({"node_modules", "venv", "env", "site-packages", "target", "build", "dist", "vendor", "var"})
_DOCUMENTS = frozenset({".md", ".markdown", ".rst", ".html", ".txt"})
_RECORDINGS = frozenset({".vtt", ".srt"})
_GITHUB = re.compile(r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A source that could be read.

    Attributes:
        id: unique among the proposals, as ``nornweave.yaml`` wants it.
        path: relative to the folder that was looked at; ``.`` for itself.
        why: what was found there.
        repository: ``owner/name`` on GitHub that a repository comes from.
    """

    id: str
    domain: Domain
    type: str
    path: str
    why: str
    repository: str | None = None


@dataclass(slots=True)
class _Folder:
    path: str
    names: frozenset[str] = frozenset()
    suffixes: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)


def look_around(root: Path) -> tuple[Proposal, ...]:
    """Return what could be read below a folder, by path; links and hidden folders are not entered."""
    proposals: list[Proposal] = []
    covered: set[tuple[str, Domain]] = set()
    for folder in _folders(root):
        for domain, type_, why in _offers(folder):
            if len(proposals) >= MAX_PROPOSALS or _is_covered(folder.path, domain, covered):
                continue
            covered.add((folder.path, domain))
            repository = _github_repository(root / folder.path) if type_ == "git" else None
            name = _identifier(root, folder.path, domain, {each.id for each in proposals})
            proposals.append(Proposal(name, domain, type_, folder.path, why, repository))
    return tuple(proposals)


def _folders(root: Path) -> Iterator[_Folder]:
    """Yield the folders, by path; what belongs to a repository counts for its top folder."""
    for seen, (place, folders, files) in enumerate(os.walk(root)):
        path = os.path.relpath(place, root)
        depth = 0 if path == "." else path.count(os.sep) + 1
        names = frozenset((*folders, *files))
        folders[:] = sorted(name for name in folders if _is_entered(name)) if depth < MAX_DEPTH else []
        if seen >= MAX_FOLDERS:
            return
        suffixes = Counter(os.path.splitext(name)[1].lower() for name in files)  # noqa: PTH122
        languages = Counter(language for name in files if (language := language_of(name)))
        yield _Folder(path, names, suffixes, languages)


def _is_entered(name: str) -> bool:
    return not name.startswith(".") and name not in _LEFT_OUT


def _offers(folder: _Folder) -> Iterator[tuple[Domain, str, str]]:
    """Yield what a folder could be read as, with the reason."""
    if ".git" in folder.names:
        yield Domain.CODE, "git", "a git repository"
        yield Domain.DOCUMENTATION, "git", "the documents in it"
        return
    if {"channels.json", "users.json"} <= folder.names:
        yield Domain.CONVERSATIONS, "slack", "a Slack export"
        return
    if recordings := sum(folder.suffixes[suffix] for suffix in _RECORDINGS):
        yield Domain.CONVERSATIONS, "transcripts", counted(recordings, "transcript")
        return
    if papers := folder.suffixes[".pdf"]:
        yield Domain.RESEARCH, "files", counted(papers, "PDF file")
    if documents := sum(folder.suffixes[suffix] for suffix in _DOCUMENTS):
        yield Domain.DOCUMENTATION, "files", counted(documents, "document")
    if folder.languages:
        language, _ = folder.languages.most_common(1)[0]
        yield Domain.CODE, "files", f"{counted(folder.languages.total(), 'code file')}, mostly {language}"


def _is_covered(path: str, domain: Domain, covered: set[tuple[str, Domain]]) -> bool:
    """Tell whether a folder above is read for the domain already."""
    places = [path]
    while places[-1] not in (".", ""):
        places.append(os.path.dirname(places[-1]) or ".")  # noqa: PTH120
    return any((place, domain) in covered for place in places)


def _identifier(root: Path, path: str, domain: Domain, taken: set[str]) -> str:
    name = root.resolve().name if path == "." else path
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "source"
    suffix = {Domain.DOCUMENTATION: "-docs", Domain.CONVERSATIONS: "-talk", Domain.RESEARCH: "-papers"}.get(domain, "")
    first = slug if slug.endswith(suffix) else f"{slug}{suffix}"
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
