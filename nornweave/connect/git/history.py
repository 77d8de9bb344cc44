"""The commits of a repository as documents: what each says, when, by whom, and what it changed.

A commit is its message, date, author, the release that first had it, and the files that it changed, each with the
counts of its lines and the names of what was changed in it. The changed lines themselves are left out: what was deleted
from a file, a password for instance, must not go on answering because a commit removed it. What it wrote in the
documentation is told as far as it stands there today: a message is for those who know the code, the manual and the
changelog say the same in the words of those who ask.

A release is a tag that is called like a version, with the commits since the release before it.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, TypeAlias, cast

from nornweave.connect.git.address import commit_url, template_of
from nornweave.connect.git.program import Blobs, GitFailedError, Lasting, origin_of, run_git, split_fields, stream_git
from nornweave.connect.git.tree import leads_outside, repository_above
from nornweave.core.errors import DocumentError, TransientDocumentError
from nornweave.core.files.paths import PathFilter
from nornweave.core.sandbox import run_apart
from nornweave.core.text.dates import since_1970
from nornweave.core.text.index_fields import THREAD_NUMBER, folded, only_releases, tag_version
from nornweave.core.types import (
    COMMIT,
    HISTORY_GATE,
    RELEASE,
    ContentHash,
    Document,
    Domain,
    Entry,
    JsonValue,
    SourceId,
    canonical_json,
    digest,
    document_id,
    freeze,
)
from nornweave.read.access_statements import access_statements
from nornweave.read.parsed import seconds_for

COMMITS, RELEASES = "commits/", "releases/"
GATE = f"{HISTORY_GATE}14:"
"""Raise it when the same commit may come out as another document."""
MAX_BODY, MAX_TEXT, MAX_NAMES, MAX_LISTED, MAX_MERGED, MAX_WRITTEN, MAX_PEOPLE = 1_200, 2_800, 12, 100, 20, 600, 5
MAX_LIST, MAX_LINE, MAX_READ = 12_000, 120, 1_000
"""Of a release: the most characters, those of a commit's first line, and the most commits that are counted."""
MAX_TOUCHED = 2_000
"""So many names and paths of one commit are found by filters and by questions of their first or last change."""
MAX_PATCH_BYTES = 8 << 20
"""Of a larger commit the files are named, and nothing in them."""
MAX_PARSED, MAX_CACHED = 300_000, 2_048
"""The largest file that is parsed, in bytes, and the number of files whose definitions are kept for the next commit."""
_PAGES = ("md", "mdx", "markdown", "rst", "adoc", "asciidoc", "org")
_PROSE = (*(f"**/*.{suffix}" for suffix in _PAGES), "**/NEWS", "**/CHANGES", "**/CHANGELOG")
_ATTRIBUTES = Path(__file__).with_name("attributes")
_DEFINING = frozenset(line.split()[0][1:] for line in _ATTRIBUTES.read_text("ascii").splitlines()) - {".md"} | {
    *(".js", ".jsx", ".lua", ".scala", ".swift", ".ts", ".tsx", ".vue")
}
"""The files of which names are told: in others a word that looks like a definition may be a secret."""
_DIFF = (
    *("diff-tree", "--stdin", "--root", "-r", "--diff-merges=first-parent", "--no-ext-diff", "--no-textconv"),
    *("--no-color", "--relative", "--no-abbrev", "--format=%B%x00"),
)
_WHOLE, _PARTIAL = ("--raw", "--patch", "-U0", "-M", "-l200"), ("--raw", "-M100%")
MIN_LETTERS = 15
"""Of a line that says something by itself."""
_BOT = re.compile(r"\[bot\]$|^(?:dependabot|renovate|greenkeeper|pre-commit)\b", re.IGNORECASE)
_MERGED = re.compile(r"Merge (?:pull request #\d+ from \S+|branch '[^']*' into \S+)$")
_MERGE_REQUEST = re.compile(r"See merge request \S{0,300}?(!\d{1,7})\s*")
"""As GitLab ends the message of a merge, with the path of the project before the number."""
_SIGNED = re.compile(r"(?:co-authored-by|signed-off-by|change-id|reviewed-by|git-svn-id):", re.IGNORECASE)
_WITH = re.compile(r"^co-authored-by:[ \t]*([^<\n]{1,100}?)[ \t]*(?:<|$)", re.IGNORECASE | re.MULTILINE)
ADDRESS = re.compile(r" ?<[^<>\s]{1,200}@[^<>\s]{1,200}>")
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.{0,300})")
_DEFINES = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|internal|static|abstract|final|sealed|async|const|unsafe|extern"
    r"|pub(?:\([^()]{0,40}\))?|inline|virtual|override|open|data|partial|declare)\s+){0,6}"
    r"(?:def|class|fn|func|fun|function|struct|enum|trait|interface|type|impl|module|namespace|object|record|protocol"
    r"|macro|sub|proc|defp|defmodule)\s+(?:\([^()]{0,80}\)\s*)?([A-Za-z_$][\w$]{1,80})"
    r"(?=\s*(?:[\[({<:=;.]|$|(?:extends|implements|struct|interface|for|where|do|is)\b))"
)
_SIDES = {b"-": 0, b"+": 1}
_WORD = re.compile(rb"[^\W_]")
_CALLED = re.compile(r"([A-Za-z_$][\w$]{1,80})\s*\(")
_ADDRESSED = re.compile(r"(?<=\])\([^()\s]*\)| ?<https?://[^<>\s]*>")
_TARGET = re.compile(r"\s*(?:\.\. _|\[[^\]]+\]:\s)")
_RECORD, _WITHIN = "\x01", "\x02"
_DRAFT = re.compile(
    r"(?:^|[-_/.])(?:draft|pre|pre-?release|alpha|beta|rc|dev|nightly|snapshot|test|preview|candidate)(?:[-_/.]|$)"
)
_NO_PREFIX = re.compile(r"(?:(?:^|[-_/.@])(?:v|r|rel|release|ver|version))*[-_/.@]*$")
"""What ends the prefix of a tag, and does not tell one series from another."""
_Defined: TypeAlias = Sequence[tuple[int, int, str]]
_NO_NAME = frozenset({"if", "for", "while", "switch", "return", "catch", "else", "match", "with", "function"})


@dataclass(slots=True)
class _Change:
    """The changes of a commit to one file.

    Attributes:
        names: what was changed in it, by the lines alone.
        blobs: the ids of the file before and after the commit.
        lines: the numbers of the lines that were removed and of those that were added, if they have a word.
    """

    path: str
    status: str
    old: str = ""
    added: int = 0
    removed: int = 0
    names: dict[str, None] = field(default_factory=dict)
    blobs: tuple[str, str] = ("", "")
    lines: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    is_code: bool = field(init=False)
    """Whether the names of changed definitions are shown for this file."""

    def __post_init__(self) -> None:
        self.is_code = PurePosixPath(self.path).suffix in _DEFINING

    def note(self, line: bytes, side: int, number: int) -> None:
        """Add a changed line and the name of what it defines. Side 0 is before the commit, side 1 after it."""
        self.lines[side].append(number)
        if found := _DEFINES.match(_decoded(line)):
            self.names[found[1]] = None

    def open_hunk(self, removed: int, added: int, header: str) -> None:
        """Count the lines of a hunk, and add the name of the definition around it, which git prints in its header."""
        self.removed, self.added = self.removed + removed, self.added + added
        found = (_DEFINES.match(header) or _CALLED.search(header)) if self.is_code else None
        if found and found[1] not in _NO_NAME:
            self.names[found[1]] = None

    def shown(self) -> str:
        """Return the change in words: ``src/a.py (+10 −2: parse, Loader)``."""
        counts = " ".join(f"{sign}{count}" for sign, count in (("+", self.added), ("−", self.removed)) if count)
        said = {"A": "new", "D": "removed", "R": f"was {self.old}" if self.old else "new"}.get(self.status[:1], "")
        told = ", ".join(filter(None, (said, counts)))
        told = ": ".join(filter(None, (told, ", ".join(list(self.names)[:MAX_NAMES]))))
        return f"{self.path} ({told})" if told else self.path


@dataclass(frozen=True, slots=True)
class Ancestry:
    """The commits up to one of them.

    Attributes:
        commit: the newest.
        parents: commit → its parents, newest first.
        named: commit → the version tags on it. Commits without one have no entry.
        said: commit → its author and its subject.
        made: version tag → its time in seconds since 1970, and its day.
        merged: commit along first parents, oldest first → this commit and the commits that it merged.
    """

    commit: str
    parents: Mapping[str, Sequence[str]]
    named: Mapping[str, Sequence[str]]
    said: Mapping[str, tuple[str, str]]
    made: Mapping[str, tuple[str, str]]
    merged: Mapping[str, Sequence[str]]

    def brought_by(self) -> dict[str, str]:
        """Return for each commit the one along first parents that brought it, which may be itself."""
        return {each: sha for sha, merged in self.merged.items() for each in merged}

    def authored(self, sha: str) -> list[str]:
        """Return the commits that a commit along first parents merged, without merges and without itself."""
        return [each for each in self.merged[sha] if each != sha and len(self.parents[each]) < 2]


@dataclass(frozen=True, slots=True)
class _Releases:
    """The releases of a branch, along its first parents.

    Attributes:
        first_had: commit → the name of the first release by date that contains it. A merge is in a release if all
            commits that it merged are.
        listed: commit along first parents → the name of the release whose list of commits it is in.
        before: commit of a release → each tag on this commit → the commit of the previous release. The latter is empty
            for the first release.
        left: commit of a release on a branch that was never merged → the commit where this branch left; of a patch on a
            branch that was merged → the merge.
    """

    first_had: Mapping[str, str]
    listed: Mapping[str, str]
    before: Mapping[str, Mapping[str, str]]
    left: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitHistory:
    """The newest commits of a branch, along its first parents.

    Attributes:
        root: a folder of the repository. Only commits that changed something in this folder count.
        most: the maximum number of commits.
        since: the maximum age of a commit; ``None`` for no limit.
        exclude: globs of files that are not mentioned. A commit that changed only such files is left out.
        quotes: whether a commit's document includes the lines that the commit wrote in the documentation and that are
            still there today.
        is_partial: whether the clone lacks the files of former commits. In that case changed files are named without
            their content.
    """

    root: Path
    most: int
    since: timedelta | None = None
    timeout_s: float = 60.0
    exclude: tuple[str, ...] = ()
    quotes: bool = True
    is_partial: bool = False
    _changes: Lasting = field(init=False, repr=False, compare=False)
    _names: Lasting = field(init=False, repr=False, compare=False)
    _blobs: Blobs = field(init=False, repr=False, compare=False)
    _defined: Callable[[str, str], _Defined | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_blobs", Blobs(self.root, timeout_s=self.timeout_s))
        # Most contents of a file are the "after" of one commit and the "before" of another.
        object.__setattr__(self, "_defined", lru_cache(MAX_CACHED)(self._parse))
        for name, options in (("_changes", _PARTIAL if self.is_partial else _WHOLE), ("_names", _PARTIAL)):
            # How git finds the function that a change is in, by language.
            arguments = ("-c", f"core.attributesFile={_ATTRIBUTES}", *_DIFF, *options)
            object.__setattr__(self, name, Lasting(self.root, *arguments, timeout_s=self.timeout_s))

    def ancestry(self, commit: str) -> Ancestry:
        """Return all commits up to ``commit``.

        Raises:
            GitFailedError: the repository cannot be read.
            SourceUnavailableError: git does not answer in time.
        """
        made = self._made()
        parents, named, said = self._walk(made, commit)
        return Ancestry(commit, parents, named, said, made, dict(_merged(_first_parents(parents), parents)))

    def entries(self, ancestry: Ancestry, web: str | None = None) -> Iterator[Entry]:
        """List the newest commits along first parents, newest first. Then list the first release of each of these.

        Args:
            web: the template for the web addresses of the repository's files; ``None`` to give entries no address.

        Raises:
            GitFailedError: the repository cannot be read.
            SourceUnavailableError: git does not answer in time.
        """
        series, branches, commit = self._series_of(ancestry), _branches(ancestry), ancestry.commit
        written = self._written(commit) if self.quotes and not self.is_partial else {}
        after = [f"--since={(datetime.now(UTC) - self.since).isoformat()}"] if self.since else []
        unreleased = "" if any(releases.before for releases in series.values()) else None
        rules = digest(str(self.is_partial), str(unreleased), *self.exclude)
        commits = [*self._commits(f"--max-count={self.most}", *after, commit, form="%H %at %as %aN")]
        order, latest = dict[str, int](), 0
        for sha, moment, *_ in reversed(commits):  # a clock may be wrong, and a rebase keeps the authors' times
            latest = order[sha] = max(int(moment), latest + 1)
        for sha, moment, day, committer in commits:
            author, merged, brought = branches.get(sha, (committer, [], []))
            had = [(prefix, releases.first_had.get(sha, "")) for prefix, releases in series.items()]
            release, had[0] = had[0][1], ("", had[0][1])
            had.sort(key=lambda each: float(ancestry.made[each[1]][0] if each[1] else "inf"))
            url = commit_url(web or "", sha)
            known: dict[str, JsonValue] = {
                "author": author or None,
                "day": day,
                "url": url or None,
                "release": release or unreleased,
                "written": written.get(sha),
                "order": order[sha],
            }
            if merged and not self.exclude:  # which of their commits it names is not known
                known |= {"merged": list[JsonValue](merged), "merged_by": committer}
            if len(had) > 1:
                known["series"] = [[*each] for each in had]
            if brought and not self.is_partial:
                known["brought"] = list[JsonValue](brought)
            yield Entry(
                path=f"{COMMITS}{sha}",
                gate=GATE + digest(sha, str(had), rules, written.get(sha, "")),
                updated_at=since_1970(moment),
                revision=sha[:10],
                metadata=freeze(known),
            )
        for releases in series.values():
            read = {releases.listed.get(sha, "") for sha in order}
            for sha, before in releases.before.items():
                is_read = releases.listed.get(releases.left.get(sha, sha), "") in read
                for name, former in before.items() if is_read else ():
                    moment, day = ancestry.made[name]
                    yield Entry(
                        path=f"{RELEASES}{name}",
                        gate=GATE + digest(former, sha, releases.listed.get(former, ""), day, rules),
                        updated_at=since_1970(moment),
                        revision=sha[:10],
                        metadata=freeze({
                            "url": commit_url(web or "", sha) or None, "day": day, "release": name,
                            "before": former or None, "former": releases.listed.get(former),
                        }),
                    )  # fmt: skip

    def _series_of(self, ancestry: Ancestry) -> dict[str, _Releases]:
        """Return the releases of each series by its prefix, the main one first."""
        parents, made = ancestry.parents, ancestry.made
        apart, tagged_apart, _ = self._walk(made, "--tags", "--not", ancestry.commit)
        whole, forks = {**parents, **apart}, _forks([*ancestry.merged], parents)
        series = dict[str, _Releases]()
        for prefix, tags in (_series(made) or {"": set[str]()}).items():
            named, beside = (
                {sha: names for sha, each in tagged.items() if (names := [name for name in each if name in tags])}
                for tagged in (ancestry.named, tagged_apart)
            )
            first_had = _first_releases(whole, {**named, **beside}, made)
            series[prefix] = _releases_of(ancestry, apart, named, beside, first_had, forks)
        return series

    def _walk(
        self, tags: Container[str], *revisions: str
    ) -> tuple[dict[str, list[str]], dict[str, list[str]], dict[str, tuple[str, str]]]:
        """Return for each commit, newest first, its parents, those of ``tags`` that are on it, and author and subject.

        Commits without a tag have no entry in the second mapping.
        """
        parents, tagged, said = dict[str, list[str]](), dict[str, list[str]](), dict[str, tuple[str, str]]()
        form = "--format=%H%x00%P%x00%D%x00%aN%x00%<(120,trunc)%s"
        fields = self._log("--decorate-refs=refs/tags/*", form, *revisions)
        for sha in fields:
            parents[sha] = next(fields, "").split()
            names = (each.removeprefix("tag: ") for each in next(fields, "").split(", "))
            versions = {name: tag_version(name) for name in names if name in tags}
            floating = {version[:1] for version in versions.values() if len(version) > 1}  # ``v2`` moves on to v2.9.1
            if found := [name for name, version in versions.items() if version not in floating]:
                tagged[sha] = found
            said[sha] = next(fields, ""), next(fields, "").strip()
        return parents, tagged, said

    def _made(self) -> dict[str, tuple[str, str]]:
        """Return for each version tag its time in seconds since 1970, and its day."""
        form = "%(refname:strip=2)%00%(creatordate:unix)%00%(creatordate:short)%00"
        printed = stream_git(
            self.root, "for-each-ref", f"--format={form}", "refs/tags", timeout_s=self.timeout_s, must_finish=True
        )
        fields = split_fields(printed)
        tags = {name.lstrip("\n"): (next(fields, ""), next(fields, "")) for name in fields}
        return {name: made for name, made in tags.items() if made[0] and tag_version(name)}

    def _written(self, commit: str) -> dict[str, str]:
        """Return for each commit the lines that it wrote in the documentation and that are still there.

        A line counts for the first commit that wrote it. Pages with an access statement are left out, because a person
        who may read the code may not be allowed to read such a page.
        """
        pages, wanted = dict[str, list[str]](), PathFilter(exclude=self.exclude)
        options = ("-I", "-z", "-e", "", commit, "--", *_PROSE)
        found = stream_git(self.root, "grep", *options, timeout_s=self.timeout_s, must_finish=True, globs=True)
        with suppress(GitFailedError):  # it finds nothing
            for line in _split_lines(found):
                path, _, text = _decoded(line).partition("\0")
                pages.setdefault(path, []).append(text)
        prefix = f"{commit}:"
        told = {
            text.strip()
            for path, lines in pages.items()
            if wanted.matches(path.removeprefix(prefix))
            and not access_statements("\n".join(lines), "rst" if path.lower().endswith(".rst") else "md")[0]
            for text in lines
            if sum(map(str.isalpha, text)) >= MIN_LETTERS and not _TARGET.match(text)
        }
        log = ("log", "--first-parent", "--diff-merges=first-parent", "--patch", "--unified=0", "--no-ext-diff")
        newest = ("--reverse", f"--max-count={self.most}", f"--format={_RECORD}%H", commit, "--", *_PROSE)
        written, sha = dict[str, list[str]](), ""
        printed = stream_git(self.root, *log, *newest, timeout_s=self.timeout_s, must_finish=True, globs=True)
        for line in _split_lines(printed):
            if line.startswith(_RECORD.encode()):
                sha = line[1:].decode("ascii")
            elif line.startswith(b"+") and (text := _decoded(line[1:]).strip()) in told:
                told.discard(text)
                written.setdefault(sha, []).append(_ADDRESSED.sub("", text))
        return {sha: _cut_to("\n".join(lines), MAX_WRITTEN) for sha, lines in written.items()}

    def _commits(self, *arguments: str, form: str) -> Iterator[list[str]]:
        """Yield the fields of each commit along first parents that changed a file outside ``exclude``."""
        wanted = PathFilter(exclude=self.exclude)
        names = ("--name-only", "--diff-merges=first-parent", "--relative") if self.exclude else ()
        form = f"--format={_RECORD}{form.replace(' ', _WITHIN)}"
        told, changed = list[str](), list[str]()
        printed = self._log("--first-parent", *names, form, *arguments, "--", ".")
        for each in itertools.chain(printed, [_RECORD]):  # the last commit ends where another would begin
            field = each.lstrip("\n")
            if field.startswith(_RECORD):
                if told and (not changed or any(map(wanted.matches, changed))):
                    yield told
                told, changed = field[1:].split(_WITHIN, form.count(_WITHIN)), []
            elif field:
                changed.append(field)

    def _log(self, *arguments: str) -> Iterator[str]:
        options = ("log", "-z", "--no-ext-diff")
        return split_fields(stream_git(self.root, *options, *arguments, timeout_s=self.timeout_s, must_finish=True))

    def fetch(self, entry: Entry) -> bytes:
        """Read one commit or release.

        Raises:
            TransientDocumentError: git does not have the commit, or does not answer.
        """
        known = {key: value for key, value in entry.metadata.items() if key not in {"url", "brought", "series"}}
        if entry.path.startswith(RELEASES):
            listed = f"{entry.metadata.get('before') or ''}..{entry.revision}".removeprefix("..")
            try:
                found = [
                    *self._commits(f"--max-count={MAX_READ + 1}", listed, form="%h %<(300,trunc)%s %<(300,trunc)%b")
                ]
            except GitFailedError as error:
                raise TransientDocumentError(f"git cannot list the commits of the release: {error}") from error
            titles = ((_titled(said.strip(), body.strip()), short) for short, said, body in found)
            subjects = [f"{_cut_to(title, MAX_LINE)} ({short})" for title, short in titles if not only_releases(title)]
            counted: dict[str, JsonValue] = {"subjects": [*subjects[:MAX_LISTED]], "count": len(subjects)}
            return canonical_json({**known, **counted, "read": len(found)}).encode()
        sha = entry.path.removeprefix(COMMITS)
        wanted = PathFilter(exclude=self.exclude)
        message, changes = self._read(sha, wanted)
        for change in changes:
            self._name_definitions(change)
            change.old = change.old if wanted.matches(change.old) else ""
        author, helpers, lines = str(known.get("author") or ""), _WITH.findall(message), Counter[str]()
        for said, changed, by in self._brought(entry, wanted):
            lines[by] += sum(change.added + change.removed for change in changed)
            helpers += _WITH.findall(said)
        wrote = sorted(lines, key=lambda name: (-lines[name], name != author))
        wrote = [name for name in wrote if not is_program(name)] or [author]
        people = [*dict.fromkeys([*wrote, *(name for name in helpers if not is_program(name))])][: MAX_PEOPLE + 1]
        known |= _released_in(_list(entry.metadata.get("series")), changes)
        known |= {"author": people[0] or None, "authors": list[JsonValue](people) if people[0] else None}
        return canonical_json({**known, **_described(message, changes, people[0])}).encode()

    def _brought(self, entry: Entry, wanted: PathFilter) -> Iterator[tuple[str, list[_Change], str]]:
        """Yield the message, the changes and the author of each commit that a merge of several people brought."""
        for each in _list(entry.metadata.get("brought")):
            sha, _, author = str(each).partition(" ")
            yield *self._read(sha, wanted), author

    def _read(self, sha: str, wanted: PathFilter) -> tuple[str, list[_Change]]:
        """Return the message of a commit and its changes to the wanted files."""
        told = f"commit {sha}", lambda given, printed: _read_commit(sha, given, printed)
        try:
            message, changes = self._changes.ask(*told)
        except TransientDocumentError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise
            message, changes = self._names.ask(*told)  # the clone lacks what the commit changed
        return message, [change for change in changes if wanted.matches(change.path)]

    def _name_definitions(self, change: _Change) -> None:
        """Replace the names of a change by those of all definitions that a changed line is in, if both sides parse."""
        names = dict[str, None]()
        sides = zip(change.blobs, (change.old or change.path, change.path), change.lines, strict=True)
        for blob, path, lines in sides if change.is_code else ():
            defined = self._defined(blob, path) if lines else ()
            if defined is None:
                return
            changed = (name for first, last, name in defined if bisect_left(lines, first) < bisect_right(lines, last))
            names |= dict.fromkeys(changed)
        change.names = names if any(change.lines) else change.names

    def _parse(self, blob: str, path: str) -> _Defined | None:
        """Return the first line, last line and name of each definition of a file; ``None`` if it cannot be parsed."""
        from nornweave.read.chunking.symbols import definition_lines  # with grammars: no command waits for them

        with suppress(DocumentError):
            raw = self._blobs.read(blob)
            if raw is not None and len(raw) <= MAX_PARSED:
                return cast(
                    _Defined | None, run_apart(definition_lines, {"path": path}, raw, cpu_s=seconds_for(len(raw)))
                )
        return None

    def close(self) -> None:
        """End the git processes that ``fetch`` keeps."""
        self._blobs.close()
        self._changes.close()
        self._names.close()

    def entries_here(self) -> Iterator[Entry]:
        """List the commits of a folder in a work tree. The list is empty if git knows no commit of the folder.

        Raises:
            SourceUnavailableError: git does not answer in time.
        """
        here = str(self.root)
        if repository_above(here) is None or shutil.which("git") is None:
            return
        try:
            if leads_outside(self.root, timeout_s=self.timeout_s):
                return
            run_git(self.root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", timeout_s=self.timeout_s)
        except (GitFailedError, OSError):
            return
        yield from self.entries(self.ancestry("HEAD"), template_of(origin_of(self.root, timeout_s=self.timeout_s)))


def _tagged_beside(
    apart: Mapping[str, Sequence[str]], tagged: Iterable[str], parents: Collection[str]
) -> dict[str, list[str]]:
    """Return a mapping from a commit to the tagged commits of branches that left there and were never merged.

    Args:
        apart: commit of such a branch → its parents.
        tagged: the tagged commits of such branches.
        parents: the other commits.
    """
    left = dict[str, list[str]]()
    for sha in tagged:
        at = sha
        while at in apart:
            at = next(iter(apart[at]), "")
        if at in parents:
            left.setdefault(at, []).append(sha)
    return left


def _branches(ancestry: Ancestry) -> dict[str, tuple[str, list[str], list[str]]]:
    """Return what each merge commit merged: the main author, the subjects, and the commits with their authors.

    The third value is empty if there are more than ``MAX_LISTED`` commits or all are of one person.
    """
    said, branches = ancestry.said, dict[str, tuple[str, list[str], list[str]]]()
    for sha in ancestry.merged:
        brought = ancestry.authored(sha)
        if people := Counter(author for each in brought if not _BOT.search(author := said[each][0])):
            subjects = [said[each][1] for each in brought[:MAX_MERGED]]
            read = [f"{each} {said[each][0]}" for each in brought]
            read = read if len(people) > 1 and len(read) <= MAX_LISTED else []
            branches[sha] = people.most_common(1)[0][0], subjects, read
    return branches


def _releases_of(
    ancestry: Ancestry,
    apart: Mapping[str, Sequence[str]],
    named: Mapping[str, list[str]],
    tagged_apart: dict[str, list[str]],
    first_had: dict[str, str],
    forks: Mapping[str, int],
) -> _Releases:
    """Return the releases of one series of tags.

    A tag on a merged branch counts as a release at the merge commit, unless it patches an older release: then nothing
    that the main line did since that release is in it, and its list is that of its branch. The lists of the main line
    also count the first tag of a branch that was never merged, at the commit where this branch left. A release
    candidate is not the first release of any commit if the release itself was made.

    Args:
        apart: commit of a branch that was never merged → its parents.
        named: commit → the tags of the series on it. ``tagged_apart`` has those of branches that were never merged.
        first_had: commit → the first release that has it. Merges are added.
        forks: what ``_forks`` returns.
    """
    parents, made, beside = ancestry.parents, ancestry.made, _tagged_beside(apart, tagged_apart, ancestry.parents)
    tagged = dict[str, list[str]]()
    counted, left = dict[str, str](), {sha: at for at, shas in beside.items() for sha in shas}
    newest_release = -1
    for sha, merged in ancestry.merged.items():
        patches = {each: named[each] for each in merged if each in named and forks[each] <= newest_release}
        tagged_apart |= patches
        left |= dict.fromkeys(patches, sha)
        tagged[sha] = [name for each in merged if each not in patches for name in named.get(each, ())]
        newest_release = forks[sha] if tagged[sha] else newest_release
        if not tagged[sha]:  # the first release of a branch from here
            behind = [name for each in merged for tip in beside.get(each, ()) for name in tagged_apart[tip]]
            tagged[sha] = sorted(behind, key=_order_of)[:1]
            counted |= dict.fromkeys(tagged[sha], sha)
        if brought := ancestry.authored(sha):
            first = {first_had.get(each, "") for each in brought}
            first_had[sha] = "" if "" in first else max(first, key=lambda name: int(made[name][0]))
    listed, before, release = dict[str, str](), dict[str, dict[str, str]](), ""
    following, finals = list[str](), set[tuple[int, ...]]()
    for sha in reversed([*ancestry.merged]):
        if tagged[sha]:
            newest = max(tagged[sha], key=_order_of)
            version, is_final = _order_of(newest)
            before[sha] = dict.fromkeys(tagged[sha], "")
            if version not in finals:  # else a draft of a release that was made after it
                before |= {each: dict.fromkeys(before[each], sha) for each in following}
                release, following = newest, []
                finals |= {version} if is_final else set()
            following.append(sha)
        if release:
            listed[sha] = release
    for sha in left:
        names, at, is_first = tagged_apart[sha], sha, False
        while not is_first and (at := next(iter(apart.get(at) or parents.get(at) or []), "")):
            there = tagged_apart.get(at) or [name for name in tagged.get(at, []) if name not in counted]
            is_first = any(_order_of(name)[1] >= _order_of(names[0])[1] for name in there)
        before[sha] = {name: before[counted[name]].pop(name) if name in counted else at for name in names}
        listed[sha] = max(names, key=_order_of)
    return _Releases(first_had, listed, before, left)


def _series(made: Mapping[str, tuple[str, str]]) -> dict[str, set[str]]:
    """Return the tags of each series by its prefix: ``v1.2`` and ``lib-v0.3`` are two. The main series comes first.

    This is the one without a prefix, or else the one with the most tags. A prefix of which all tags are later and have
    higher versions goes on with a series: ``jar-1.0``, then ``v2.0``.
    """
    named, series = dict[str, list[str]](), dict[str, list[str]]()
    for tag in sorted(made, key=lambda tag: (int(made[tag][0]), _order_of(tag))):
        before = tag.lower().rpartition(".".join(map(str, tag_version(tag))))[0]
        named.setdefault(_NO_PREFIX.sub("", _DRAFT.sub("", before)), []).append(tag)
    for prefix, tags in named.items():
        first, lowest = int(made[tags[0]][0]), min(map(_order_of, tags))
        continued = (
            other
            for other, old in series.items()
            if int(made[old[-1]][0]) < first and max(map(_order_of, old)) < lowest
        )
        other = next(continued, prefix)
        series["" if "" in {prefix, other} else other] = [*series.pop(other, []), *tags]
    return {prefix: {*series[prefix]} for prefix in sorted(series, key=lambda each: (each != "", -len(series[each])))}


def _first_releases(
    parents: Mapping[str, Sequence[str]], tagged: Mapping[str, Sequence[str]], made: Mapping[str, tuple[str, str]]
) -> dict[str, str]:
    """Return a mapping from each commit to the first release by date that contains it.

    A draft is the first release only of commits that no final release contains.
    """
    first, tags = dict[str, str](), [(name, sha) for sha, names in tagged.items() for name in names]
    for name, tip in sorted(tags, key=lambda each: (not _order_of(each[0])[1], int(made[each[0]][0]), each[0])):
        left = [tip]
        while left:
            if (sha := left.pop()) in parents and sha not in first:
                first[sha] = name
                left += parents[sha]
    return first


def _released_in(series: Sequence[JsonValue], changes: Sequence[_Change]) -> dict[str, JsonValue]:
    """Return the release of the series that most changed files belong to, and one of another series before it.

    What belongs to a series are folders and files that are called like its prefix; all others belong to the main one.

    Args:
        series: the prefix of each series, empty for the main one, with the release that first had a commit, by time.
    """
    named = [{folded(part) for part in re.split(r"[/.]", change.path)} for change in changes]
    releases = [(str(prefix), str(release)) for prefix, release in map(_list, series)]
    counts = {
        prefix: sum(folded(prefix.rpartition("/")[2]) in parts for parts in named) for prefix, _ in releases if prefix
    }
    own = max(counts, key=lambda prefix: counts[prefix], default="")
    own = own if counts.get(own, 0) * 2 > len(named) else ""
    before = [*itertools.takewhile(lambda each: each[0] != own, releases)]
    earlier = next((release for prefix, release in before if release and counts.get(prefix, 1)), None)
    return {"release": dict(releases)[own], "earlier": earlier} if releases else {}


def _first_parents(parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the newest commit and its first parents, newest first."""
    mainline = [*itertools.islice(parents, 1)]
    while mainline and (further := parents.get(mainline[-1])) and further[0] in parents:
        mainline.append(further[0])
    return mainline


def _merged(mainline: Sequence[str], parents: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield each commit of a branch, oldest first, with a list of this commit and the commits that it merged."""
    seen = set[str]()
    for sha in reversed(mainline):
        left, merged = [sha], list[str]()
        while left:
            if (each := left.pop()) not in seen and each in parents:
                seen.add(each)
                merged.append(each)
                left += parents[each]
        yield sha, merged


def _forks(mainline: Sequence[str], parents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return for each commit the number of the newest commit of a branch, oldest first, that it contains."""
    forks = {sha: number for number, sha in enumerate(mainline)}
    for sha in reversed([*parents]):  # newest first, so parents come before their children
        forks.setdefault(sha, max((forks.get(each, -1) for each in parents[sha]), default=-1))
    return forks


def history_document(source_id: SourceId, entry: Entry, raw: bytes) -> Document:
    """Build the document from the bytes that ``CommitHistory.fetch`` returned.

    Raises:
        DocumentError: ``CommitHistory.fetch`` did not return these bytes.
    """
    try:
        said: Mapping[str, JsonValue] = json.loads(raw)
    except ValueError as error:
        raise DocumentError(f"no record of a commit: {error}") from error
    is_release = entry.path.startswith(RELEASES)
    title, text = _of_release(said) if is_release else _of_commit(entry, said)
    author, release = said.get("author"), said.get("release")
    return Document(
        id=document_id(source_id, entry.path),
        domain=Domain.CODE,
        source_id=source_id,
        path=entry.path,
        text=text,
        format=RELEASE if is_release else COMMIT,
        content_hash=ContentHash(digest(raw)),
        title=title,
        updated_at=entry.updated_at,
        revision=entry.revision,
        url=str(entry.metadata["url"]) if entry.metadata.get("url") else None,
        metadata=freeze({
            "kind": RELEASE if is_release else COMMIT,
            "author": author,
            "authors": said.get("authors") or None,
            "release": release or None,
            "former": said.get("former"),
            "order": said.get("order"),
            "tags": said.get("numbers") or None,
            "changed": said.get("paths") or None,
            "touches": said.get("touches") or None,
        }),
    )  # fmt: skip


def is_program(author: str) -> bool:
    """Tell whether the author of a commit is a program, by its name."""
    return bool(_BOT.search(author))


def _of_release(said: Mapping[str, JsonValue]) -> tuple[str, str]:
    lines = [f"- {each}" for each in _list(said.get("subjects"))]
    told, read = int(str(said.get("count"))), int(str(said.get("read")))
    count = f"more than {told:,}" if read > MAX_READ else f"{told:,}"
    since = f" since {said['former']}" if said.get("former") else ""
    day = f" of {said['day']}" if said.get("day") else ""
    title = f"Release {said.get('release')}"
    beside = f" and {read - told:,} of housekeeping" if read > told else ""
    return title, _cut(f"{title}{day} has {count} commits{beside}{since}:", lines, "\n", MAX_LIST, told)


def _of_commit(entry: Entry, said: Mapping[str, JsonValue]) -> tuple[str, str]:
    day = f" on {said['day']}" if said.get("day") else ""
    others = [str(each) for each in _list(said.get("authors"))[1:]]
    beside = f" with {', '.join(others)}" if others else ""
    by = f" by {said['author']}{beside}" if said.get("author") else ""
    release = f", first released in {said['release']}" if said.get("release") else ""
    if said.get("release") == "":
        release = ", not released yet"
    release += f", in {said['earlier']} before" if said.get("earlier") else ""
    merger = (
        f", merged by {said['merged_by']}" if said.get("merged_by", said.get("author")) != said.get("author") else ""
    )
    made = f"Committed{day}{by} as {entry.revision}{merger}{release}."
    subject, body = str(said["subject"]), str(said["body"])
    merged = "\n".join(f"- {line}" for line in _list(said.get("merged")) if line != subject)
    written = f"In the documentation:\n{said['written']}" if said.get("written") else ""
    # The author and the date stand in the first part of what is cut.
    head = "\n\n".join(filter(None, (subject, body, made, merged, written)))
    changed = [str(each) for each in _list(said.get("changes"))]
    return subject, _cut(f"{head}\n\nChanged:", [f"- {each}" for each in changed], "\n") if changed else head


def _cut(head: str, lines: Sequence[str], separator: str, most: int = MAX_TEXT, count: int = 0) -> str:
    """Return the head and as many lines as fit into ``most`` characters. The last line counts those left out.

    Args:
        count: how many lines there are in all, if more than these.
    """
    length, shown = len(head), list[str]()
    for line in lines:
        length += len(line) + 1
        if length > most and shown:
            break
        shown.append(line)
    left_out = max(len(lines), count) - len(shown)
    return separator.join((head, *shown, *([f"- and {left_out:,} others"] if left_out else [])))


def _cut_to(text: str, length: int) -> str:
    """Return the whole lines of a text that fit into ``length`` characters. A long first line is cut."""
    if len(text) <= length:
        return text
    start = text[:length]
    return (start.rpartition("\n")[0].rstrip() or start) + " …"


def _order_of(tag: str) -> tuple[tuple[int, ...], bool]:
    """Return the sort key of a release tag. It orders tags by version. A release candidate comes before its release."""
    version = tag_version(tag)
    before, _, behind = tag.lower().rpartition(".".join(map(str, version)))
    return version, not (re.search(r"[a-z]", behind) or _DRAFT.search(before))


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else ()


def _described(message: str, changes: Sequence[_Change], author: str) -> dict[str, JsonValue]:
    """Return the record of a commit's message and changes. A program's message is stored without its body."""
    subject, _, body = ADDRESS.sub("", message.strip()).partition("\n")
    lines = [line for line in body.strip().splitlines() if not _SIGNED.match(line)]
    is_merge = _MERGED.match(subject) is not None and bool(lines)
    subject = _titled(subject, "\n".join(lines))
    lines = [line for line in lines[is_merge:] if not _MERGE_REQUEST.fullmatch(line)]
    body = "" if is_program(author) else "\n".join(lines).strip()
    body = _cut_to(body, MAX_BODY)
    names = dict.fromkeys(name for change in changes for name in change.names)
    return {
        "subject": subject.strip()[:300] or "(no message)",
        "body": body,
        "numbers": [f"#{number}" for number in dict.fromkeys(THREAD_NUMBER.findall(f"{subject}\n{message}"))][:20],
        "changes": [change.shown() for change in changes],
        "paths": [path for change in changes for path in (change.path, change.old) if path][:MAX_TOUCHED],
        "touches": list(names)[:MAX_TOUCHED],
    }


def _titled(subject: str, body: str) -> str:
    """Return the title of a commit with its number.

    For a merge this is the title of the merged request, because the subject of the merge itself says little.
    """
    title = body.splitlines()[0] if body and _MERGED.match(subject) else subject
    number, request = THREAD_NUMBER.search(subject), _MERGE_REQUEST.search(body)
    named = request[1] if request else number[0] if number else ""
    return f"{title} ({named})" if named not in title else title


def _read_commit(sha: str, given: IO[bytes], printed: IO[bytes]) -> tuple[str, list[_Change]]:
    """Ask a running ``git diff-tree --stdin`` for a commit. Return its message and its changes.

    After the commit's id an invalid id is sent. Git prints the invalid id unchanged, which marks the end of the answer.

    Raises:
        OSError: git ended. ``ValueError`` if its answer has another form than expected.
    """
    end = f"end of {sha}\n".encode()
    given.write(f"{sha}\n".encode("ascii") + end)
    given.flush()
    lines = _lines(printed, end)
    message = list[bytes]()
    for line in lines:
        text, ends, _ = line.partition(b"\0")
        message.append(text)
        if ends:
            break
    changes = dict[str, _Change]()
    current, left, at = None, [0, 0], [0, 0]
    for line in lines:
        if any(left):
            if (side := _SIDES.get(line[:1])) is not None:
                if current and current.is_code and _WORD.search(line):
                    current.note(line[1:400], side, at[side])
                left[side], at[side] = left[side] - 1, at[side] + 1
        elif line.startswith(b":"):
            *_, before, after, status = line.split(b"\t")[0].split()
            paths = [_decoded(path) for path in line.rstrip(b"\n").split(b"\t")[1:]]
            kind, blobs = status.decode("ascii", "replace"), (_decoded(before), _decoded(after))
            changes[paths[-1]] = _Change(paths[-1], kind, paths[0] if kind.startswith("R") else "", blobs=blobs)
        elif line.startswith((b"--- a/", b"+++ b/")):
            current = changes.get(_decoded(line[6:]).rstrip("\n\t")) or current
        elif hunk := _HUNK.match(_decoded(line[:400])):
            left = [1 if count is None else int(count) for count in (hunk[2], hunk[4])]
            at = [int(hunk[1]), int(hunk[3])]
            if current:
                current.open_hunk(left[0], left[1], hunk[5])
        elif line.startswith(b"diff --git "):
            current = None
    return _decoded(b"".join(message)), list(changes.values())


def _split_lines(stream: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for part in stream:
        *lines, rest = (rest + part).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _lines(printed: IO[bytes], end: bytes) -> Iterator[bytes]:
    read = 0
    while (line := printed.readline()) != end:
        if not line:
            raise OSError("git ended")
        read += len(line)
        if read <= MAX_PATCH_BYTES:
            yield line


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")
