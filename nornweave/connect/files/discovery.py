"""Look around in a folder for what could be a source: repositories, documentation, exports, transcripts, papers."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path, PurePosixPath

from nornweave.core.text.legible import counted
from nornweave.core.types import Domain
from nornweave.read.chunking.languages import language_of

# Deep enough for a folder of checkouts, with a folder of each.
MAX_DEPTH = 3
MAX_FOLDERS = 5_000
MAX_PROPOSALS = 40
_LEFT_OUT = frozenset({"node_modules", "venv", "env", "site-packages", "target", "build", "dist", "vendor", "var"})
_DOCUMENTS = frozenset({".md", ".markdown", ".rst", ".html", ".txt", ".adoc", ".asciidoc", ".org"})
_RECORDINGS = (".vtt", ".srt")
_RESEARCH = frozenset({"research", "papers", "paper", "literature", "bibliography", "publications"})


@dataclass(frozen=True, slots=True)
class Proposal:
    """A source that could be read.

    Attributes:
        id: unique among the proposals, as ``nornweave.yaml`` wants it.
        path: relative to the folder that was looked at; ``.`` for itself.
        exclude: globs of what is another source.
    """

    id: str
    domain: Domain
    type: str
    path: str
    why: str
    exclude: tuple[str, ...] = ()


@dataclass(slots=True)
class _Tree:
    """A folder that is read as a whole, with the files in it and below: by suffix, and code by language."""

    path: str
    type: str
    suffixes: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)

    def add(self, files: Collection[str]) -> None:
        self.suffixes.update(PurePosixPath(name).suffix.lower() for name in files)
        self.languages.update(language for name in files if (language := language_of(name)))

    @property
    def texts(self) -> int:
        return sum(self.suffixes[suffix] for suffix in _DOCUMENTS)

    @property
    def papers(self) -> int:
        return self.suffixes[".pdf"]

    @property
    def code(self) -> str:
        languages = self.languages.most_common(1)
        return "".join(f"{counted(self.languages.total(), 'code file')}, mostly {name}" for name, _ in languages)

    @property
    def documents(self) -> str:
        counts = ((self.papers, "PDF file"), (self.texts, "document"))
        return " and ".join(counted(number, noun) for number, noun in counts if number)


def look_around(root: Path) -> tuple[Proposal, ...]:
    """Return what could be read below a folder, by path; links and hidden folders are not entered.

    Repositories, exports and recordings are sources of their own. Of everything else each folder directly below is one
    source of code and one of documents; or the folder itself is, if files lie in it.
    """
    trees = sorted(_trees(root), key=lambda tree: PurePosixPath(tree.path).parts)
    offers = [(tree, *offer) for tree in trees for offer in _offers(tree)]
    proposals: list[Proposal] = []
    for tree, domain, why in offers[:MAX_PROPOSALS]:
        name = _identifier(root, tree.path, domain, {each.id for each in proposals})
        proposals.append(Proposal(name, domain, tree.type, tree.path, why, tuple(_excluded(tree, trees))))
    return tuple(proposals)


def _trees(root: Path) -> list[_Tree]:
    trees: list[_Tree] = []
    of_folder: dict[str, _Tree] = {}
    for seen, (place, folders, files) in enumerate(os.walk(root)):
        if seen >= MAX_FOLDERS:
            break
        path = Path(os.path.relpath(place, root)).as_posix()
        above = of_folder.get(PurePosixPath(path).parent.as_posix())  # the root has none
        kind = _kind({*folders, *files}) if len(PurePosixPath(path).parts) <= MAX_DEPTH else "files"
        is_split = above is not None and above.path == "." and not any(_offers(above))
        if above is None or (above.type == "files" and (kind != "files" or is_split)):
            above = _Tree(path, kind)
            trees.append(above)
        of_folder[path] = above
        above.add(files)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _LEFT_OUT)
    return trees


def _kind(names: Collection[str]) -> str:
    """Return the type of source that a folder with these names is."""
    if ".git" in names:
        return "git"
    if {"channels.json", "users.json"}.issubset(names):
        return "slack"
    return "transcripts" if any(name.lower().endswith(_RECORDINGS) for name in names) else "files"


def _offers(tree: _Tree) -> Iterator[tuple[Domain, str]]:
    """Yield the domains that a tree can be read for, and why."""
    if tree.type == "git":
        yield Domain.CODE, f"a git repository, {tree.code}".removesuffix(", ")
        yield Domain.DOCUMENTATION, f"the documents in it, {tree.documents}".removesuffix(", ")
    elif tree.type == "slack":
        yield Domain.CONVERSATIONS, "a Slack export"
    elif tree.type == "transcripts":
        yield Domain.CONVERSATIONS, counted(sum(tree.suffixes[suffix] for suffix in _RECORDINGS), "transcript")
    else:
        if tree.languages:
            yield Domain.CODE, tree.code
        if tree.documents:
            is_research = PurePosixPath(tree.path).name.lower() in _RESEARCH or tree.papers > tree.texts
            yield Domain.RESEARCH if is_research else Domain.DOCUMENTATION, tree.documents


def _excluded(tree: _Tree, trees: Sequence[_Tree]) -> Iterator[str]:
    """Yield globs of what lies below a source of files and is another one."""
    for other in trees if tree.type == "files" else ():
        if other is not tree and PurePosixPath(other.path).is_relative_to(tree.path):
            yield f"/{PurePosixPath(other.path).relative_to(tree.path)}/**"


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
