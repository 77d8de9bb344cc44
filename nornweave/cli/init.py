"""The command ``nornweave init``: write a configuration by looking around.

A folder is searched for possible sources: repositories, documentation, exports, transcripts, papers.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import typer
import yaml
from rich.text import Text

from nornweave.cli.options import JsonOption, output
from nornweave.connect.connectors import load_settings
from nornweave.connect.edit import add_source
from nornweave.connect.files.skip import WITH_FOLDERS, Rules, tree_of_folder
from nornweave.connect.git.tree import look_at
from nornweave.connect.transcripts import is_chat
from nornweave.core.errors import ConfigError, DocumentError, SourceUnavailableError
from nornweave.core.files.paths import open_regular
from nornweave.core.files.writing import write_whole
from nornweave.core.text.terminal import counted, print_json
from nornweave.core.types import Domain
from nornweave.read.blocks.man import is_called_manual
from nornweave.read.chunking.languages import PAGES, is_program_page, language_of, program_suffix
from nornweave.read.kinds import format_of, holds_code, is_code_name, is_unknown

_HEAD = """\
# What NornWeave reads, written by `nornweave init`. docs/configuration.md says what may stand here.
data_dir: ./var   # everything that NornWeave writes; relative to this file
sources:
"""
_ELSEWHERE = """\
  # Sources that live elsewhere; the token is read from the environment variable that is named. With `access:` at the
  # top, `rights: source` shows documents of Slack, GitHub, GitLab, … to their readers (docs/rights.md):
  # - {id: api, domain: code, type: git, url: "https://git.example.org/team/api.git", credentials_env: GIT_TOKEN}
  # - {id: manual, domain: documentation, type: web, url: "https://docs.example.org/guide/"}
  # - {id: wiki, domain: documentation, type: confluence, url: "https://team.atlassian.net", spaces: [ENG],
  #    user: me@example.org, token_env: ATLASSIAN_TOKEN}
  # - {id: chat, domain: conversations, type: slack, token_env: SLACK_TOKEN, channels: [engineering]}
  # - {id: issues, domain: conversations, type: github, repository: owner/name}   # set GITHUB_TOKEN
  # - {id: merges, domain: conversations, type: gitlab, project: group/name}       # set GITLAB_TOKEN
  # - {id: tickets, domain: conversations, type: jira, url: "https://team.atlassian.net", projects: [PAY],
  #    user: me@example.org, token_env: ATLASSIAN_TOKEN}
  # - {id: questions, domain: research, type: stackexchange, site: stackoverflow, tags: [duckdb]}
"""

# Deep enough for a folder of checkouts, with a folder of each.
MAX_DEPTH = 3
MAX_FOLDERS = 5_000
MAX_PROPOSALS = 40
_PAGE_HEAD = 64_000  # includes the definitions that programs write at the head of a manual page
_OWN = "var"  # where the configuration that is written keeps what the system writes
_RECORDINGS = frozenset({".vtt", ".srt"})
_DATA = frozenset({".json", ".jsonc", ".xml"})
_SETTINGS = _DATA | {".yaml", ".yml", ".toml", ".ini", ".cfg"}
_LINES = frozenset({".jsonl", ".ndjson"})
_LOGS = frozenset({".txt", ".log", ".weechatlog"})
_LOG_HEAD = 8_000
_RESEARCH = frozenset({"research", "papers", "paper", "literature", "bibliography", "publications"})


def init(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Where to look, three folders deep.")] = Path(),
    force: Annotated[bool, typer.Option(help="Replace a configuration that is there.")] = False,
    add: Annotated[
        list[str] | None,
        typer.Option(metavar="PLACE", help="Add a folder, a git or a web address to a configuration that is there."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Look around for repositories, documents, exports and papers, and write a commented nornweave.yaml.

    The configuration is written to the file of --config. Paths in it are relative to the folder of this file.
    """
    file: Path = context.obj
    if add:
        _add(file, add, as_json=as_json)
    else:
        _look_around(file, folder, force=force, as_json=as_json)


def _look_around(file: Path, folder: Path, *, force: bool, as_json: bool) -> None:
    if file.exists() and not force:
        raise ConfigError(f"{file} is there already; `nornweave init --force` replaces it")
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    proposals = look_around(folder)
    write_whole(file, "".join(_lines(proposals, file.resolve().parent, folder.resolve())))
    load_settings(file)  # check that all other commands can read the new file
    if as_json:
        print_json({"file": str(file), "sources": [_keys(each, each.path) for each in proposals]})
        return
    for each in proposals:
        output.print(Text(f"{each.domain.value:<14} {each.path}: {each.why}"), soft_wrap=True)
    found = counted(len(proposals), "source") if proposals else "no sources yet: fill in those that live elsewhere"
    output.print(Text(f"{file} is written, {found}. Next: `nornweave doctor`, then `nornweave sync`"), soft_wrap=True)


def _add(file: Path, places: Sequence[str], *, as_json: bool) -> None:
    """Add the sources that can be read at each place to a configuration, and print them."""
    taken = {source.id for source in load_settings(file).sources} if file.exists() else set()
    added = []
    for place in places:
        for keys in _sources_at(file, place):
            keys["id"] = next(name for name in numbered(keys["id"]) if name not in taken)
            add_source(file, keys)
            taken.add(keys["id"])
            added.append(keys)
    if as_json:
        print_json({"file": str(file), "sources": added})
        return
    for keys in added:
        output.print(Text(f"{keys['domain']:<14} {keys['id']}: added to {file}"), soft_wrap=True)
    output.print(Text("Next: `nornweave sync --dry-run`, then `nornweave sync`"), soft_wrap=True)


def _sources_at(file: Path, place: str) -> list[dict[str, Any]]:
    """Return the settings of the sources that can be read at a place.

    Raises:
        ConfigError: the place is neither an address nor a folder with anything that can be read.
    """
    name = (
        re.sub(r"[^a-z0-9]+", "-", re.sub(r"^\w+://|\.git$", "", place.rstrip("/")).lower()).strip("-")[-40:].strip("-")
    )
    if re.match(r"(?:ssh|git|https?)://.*\.git/?$|[\w.-]+@[\w.-]+:", place):
        return [{"id": name, "domain": "code", "type": "git", "url": place}]
    if place.startswith(("https://", "http://")):
        return [{"id": name, "domain": "documentation", "type": "web", "url": place}]
    folder = Path(place)
    proposals = look_around(folder) if folder.is_dir() else ()
    if not proposals:
        raise ConfigError(f"{place}: is no address, and no folder with code, documents, exports or papers")
    base = file.resolve().parent
    return [_keys(each, _relative(base, folder.resolve() / each.path)) for each in proposals]


def _lines(proposals: Sequence[Proposal], base: Path, folder: Path) -> Iterator[str]:
    yield _HEAD if proposals else _HEAD.replace("sources:", "sources: []")
    for each in proposals:
        path = _relative(base, folder / each.path)
        yield f"  - {_flow(_keys(each, path))}   # {each.why}\n"
    yield _ELSEWHERE if proposals else _ELSEWHERE.replace("  # ", "# ")


def _keys(proposal: Proposal, path: str) -> dict[str, Any]:
    keys = {"id": proposal.id, "domain": proposal.domain.value, "type": proposal.type, "path": path}
    globs = {"only": list(proposal.only), "exclude": list(proposal.exclude)}
    return {**keys, **{key: value for key, value in globs.items() if value}}


def _flow(keys: dict[str, Any]) -> str:
    return yaml.safe_dump(keys, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True).strip()


def _relative(base: Path, path: Path) -> str:
    resolved = path.resolve()
    return str(resolved.relative_to(base)) if resolved.is_relative_to(base) else str(resolved)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A possible source.

    Attributes:
        id: unique among the proposals, and valid as an id in ``nornweave.yaml``.
        path: relative to the searched folder; ``.`` for that folder itself.
        exclude: globs of other sources below this folder.
        only: globs of the files to read; empty to read all files.
    """

    id: str
    domain: Domain
    type: str
    path: str
    why: str
    exclude: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


@dataclass(slots=True)
class _Tree:
    """A folder that would be one source, with its files by domain and suffix.

    Attributes:
        code: the number of code files by language, or by suffix if no parser is known.
        documents: the number of documents by suffix. PDF files count as documents.
        talk: the number of recordings, and of message files with JSON lines.
        chats: the paths of logs of chats, relative to the tree.
    """

    path: str
    type: str
    code: Counter[str] = field(default_factory=Counter)
    documents: Counter[str] = field(default_factory=Counter)
    talk: Counter[str] = field(default_factory=Counter)
    chats: list[str] = field(default_factory=list)

    @property
    def has_content(self) -> bool:
        """Whether the folder has any files other than settings. Settings files are common in all folders."""
        return bool(self.chats) or any(set(counts) - _SETTINGS for counts in (self.code, self.documents, self.talk))

    @property
    def code_words(self) -> str:
        kinds = self.code.most_common(1)
        return "".join(f"{counted(self.code.total(), 'code file')}, mostly {name}" for name, _ in kinds)

    @property
    def document_words(self) -> str:
        papers = self.documents[".pdf"]
        counts = ((papers, "PDF file"), (self.documents.total() - papers, "document"))
        return " and ".join(counted(number, noun) for number, noun in counts if number)


def look_around(root: Path) -> tuple[Proposal, ...]:
    """Return the possible sources below a folder, by path. Links and hidden folders are skipped.

    Files that a sync would leave out are not counted. Each repository and each Slack export is a separate source. Any
    other direct subfolder is one source for each domain that can read its files. The folder itself is a source if it
    directly contains files.
    """
    trees = sorted(
        (tree for tree in _trees(root) if tree.path != "." or tree.type != "files" or tree.has_content),
        key=lambda tree: PurePosixPath(tree.path).parts,
    )
    proposals: list[Proposal] = []
    for tree in trees:
        for domain, kind, why, only in _offers(tree):
            name = _identifier(root, tree.path, domain, {each.id for each in proposals})
            chats = () if domain is Domain.CONVERSATIONS else map(_glob, sorted(tree.chats))
            exclude = (*_nested_sources(tree, trees), *chats)
            proposals.append(Proposal(name, domain, kind, tree.path, why, exclude, only))
    return tuple(proposals[:MAX_PROPOSALS])


def _trees(root: Path) -> list[_Tree]:
    trees: list[_Tree] = []
    of_folder: dict[str, _Tree] = {}
    names = tree_of_folder(str(root))
    rules = {domain: Rules(domain, names) for domain in WITH_FOLDERS}
    ignored: set[str] = set()
    for seen, (place, folders, files) in enumerate(os.walk(root)):
        if seen >= MAX_FOLDERS:
            break
        path = Path(os.path.relpath(place, root)).as_posix()
        prefix = "" if path == "." else f"{path}/"
        if not prefix or ".git" in {*folders, *files}:
            ignored |= _ignored_in(place, prefix, rules.values())
        above = of_folder.get(PurePosixPath(path).parent.as_posix())  # the root has none
        kind = _kind({*folders, *files}) if len(PurePosixPath(path).parts) <= MAX_DEPTH else "files"
        is_split = above is not None and above.path == "." and not above.has_content
        if above is None or (above.type == "files" and (kind != "files" or is_split)):
            above = _Tree(path, kind)
            trees.append(above)
        of_folder[path] = above
        for name in files:
            if prefix + name not in ignored:
                _count(above, root, prefix + name, rules)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and f"{prefix}{name}/" not in ignored and (prefix or name != _OWN)
            if rules[Domain.CODE].skip_directory(prefix + name) is None
        )
    return trees


def _ignored_in(place: str, prefix: str, rules: Iterable[Rules]) -> set[str]:
    """Return the paths that git ignores in a folder's work tree. Add the tracked paths to ``rules``."""
    try:
        tree = look_at(place)
    except SourceUnavailableError:
        return set()  # the sync reports it
    if tree is None:
        return set()
    for each in rules:
        each.tracked.update(prefix + path for path in tree.tracked)
    return {prefix + path for path in tree.ignored}


def _count(tree: _Tree, root: Path, path: str, rules: Mapping[Domain, Rules]) -> None:
    """Count a file for each domain that can read it."""
    suffix = PurePosixPath(path.lower()).suffix
    if suffix in _RECORDINGS or (suffix in _LINES and tree.type == "files"):
        tree.talk[suffix] += 1
    if suffix in _LOGS and tree.type == "files" and is_chat(_head(root / path, _LOG_HEAD)):
        tree.chats.append(PurePosixPath(path).relative_to(tree.path).as_posix())
        return
    head = "" if suffix else _head(root / path)
    is_page = suffix in PAGES and not is_program_page(_head(root / path, _PAGE_HEAD))
    if (
        not is_page
        and rules[Domain.CODE].skip_file(path, 0) is None
        and (suffix or is_code_name(PurePosixPath(path).name) or program_suffix(head))
        and not (is_unknown(path) and not holds_code(_head(root / path, _PAGE_HEAD)))
    ):
        tree.code[language_of(path, head) or suffix or PurePosixPath(path).name] += 1
    if is_called_manual(path):
        head = _head(root / path, _PAGE_HEAD)
        is_document = format_of(path, head, Domain.DOCUMENTATION) is not None
    else:
        is_document = bool(suffix) or PurePosixPath(path.lower()).name.startswith("readme")
    if is_document and rules[Domain.DOCUMENTATION].skip_file(path, 0) is None:
        tree.documents[suffix] += 1


def _head(file: Path, characters: int = 0) -> str:
    """Return the first ``characters`` of a file, or its first line if that is 0; empty if it cannot be read."""
    try:
        with open_regular(file) as opened:
            return (opened.read(characters) if characters else opened.readline(200)).decode("utf-8", "replace")
    except (OSError, DocumentError):
        return ""


def _kind(names: Collection[str]) -> str:
    """Return the type of source for a folder that has entries with these names."""
    if ".git" in names:
        return "git"
    return "slack" if {"channels.json", "users.json"}.issubset(names) else "files"


def _offers(tree: _Tree) -> Iterator[tuple[Domain, str, str, tuple[str, ...]]]:
    """Yield the possible sources of a tree: the domain, the type, the reason, and globs of the files to read."""
    if tree.type == "slack":
        yield Domain.CONVERSATIONS, "slack", "a Slack export", ()
        return
    recordings = {suffix for suffix in tree.talk if suffix in _RECORDINGS}
    # Beside recordings texts are transcripts, unless other documents lie there too.
    are_transcripts = bool(recordings) and set(tree.documents) <= {".txt"}
    is_repository = tree.type == "git"
    if set(tree.code) - _DATA:
        yield Domain.CODE, tree.type, f"{'a git repository, ' if is_repository else ''}{tree.code_words}", ()
    if tree.documents and not are_transcripts:
        papers, texts = tree.documents[".pdf"], tree.documents.total() - tree.documents[".pdf"]
        is_research = PurePosixPath(tree.path).name.lower() in _RESEARCH or papers > texts
        domain = Domain.RESEARCH if is_research and not is_repository else Domain.DOCUMENTATION
        yield domain, tree.type, f"{'the documents in it, ' if is_repository else ''}{tree.document_words}", ()
    if recordings:
        only = () if are_transcripts or not tree.documents else tuple(f"*{suffix}" for suffix in sorted(recordings))
        number = sum(tree.talk[suffix] for suffix in recordings)
        yield Domain.CONVERSATIONS, "transcripts", counted(number, "transcript"), only
    if lines := sorted(suffix for suffix in tree.talk if suffix in _LINES):
        number = sum(tree.talk[suffix] for suffix in lines)
        why = counted(number, "message file")
        yield Domain.CONVERSATIONS, "messages", why, tuple(f"*{suffix}" for suffix in lines)

    if tree.chats:
        suffixes = {PurePosixPath(each).suffix for each in tree.chats}
        globs = map(_glob, tree.chats) if suffixes & tree.documents.keys() else (f"*{each}" for each in suffixes)
        yield Domain.CONVERSATIONS, "messages", counted(len(tree.chats), "chat log"), tuple(sorted(globs))


def _glob(path: str) -> str:
    """Return a glob for exactly this file."""
    return "/" + re.sub(r"([\\*?\[\]])", r"\\\1", path)


def _nested_sources(tree: _Tree, trees: Sequence[_Tree]) -> Iterator[str]:
    """Yield globs of the other sources that are inside the folder of a source."""
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
    """Yield a name, then the same name with the numbers 2, 3 and so on."""
    yield name
    yield from (f"{name}-{number}" for number in count(2))
