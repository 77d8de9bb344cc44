"""The commits of a repository as documents: what each says, when, by whom, and what it changed.

A commit is its message, date, author, the release that first had it, and the files that it changed, each with the
counts of its lines and the names of what was changed in it. The changed lines themselves are left out: what was deleted
from a file, a password for instance, must not go on answering because a commit removed it.

A release is a tag that is called like a version, with the commits since the release before it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

from nornweave.connect.git.address import commit_url, template_of
from nornweave.connect.git.program import GitFailedError, Lasting, origin_of, run_git, split_fields, stream_git
from nornweave.connect.git.tree import leads_outside, repository_above
from nornweave.core.errors import DocumentError, TransientDocumentError
from nornweave.core.text.dates import since_1970
from nornweave.core.text.index_fields import released
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

COMMITS, RELEASES = "commits/", "releases/"
GATE = f"{HISTORY_GATE}1:"
"""Raise it when the same commit may come out as another document."""
MAX_BODY, MAX_TEXT, MAX_NAMES, MAX_LISTED = 1_200, 2_800, 12, 100
MAX_PATCH_BYTES = 8 << 20
"""Of a larger commit the files are named, and nothing in them."""
_ATTRIBUTES = Path(__file__).with_name("attributes")
_DIFF = (
    *("diff-tree", "--stdin", "--root", "-r", "--diff-merges=first-parent", "--no-ext-diff", "--no-textconv"),
    *("--no-color", "--relative", "--abbrev=10", "--format=%B%x00"),
)
_WHOLE, _PARTIAL = ("--raw", "--patch", "-U0", "-M", "-l200"), ("--raw", "-M100%")
_BOT = re.compile(r"\[bot\]$|^(?:dependabot|renovate|greenkeeper|pre-commit)\b", re.IGNORECASE)
_MERGED = re.compile(r"Merge (?:pull request #\d+ from \S+|branch '[^']*' into \S+)$")
_NUMBER = re.compile(r"(?<![\w/&])(?:[#!]|GH-)(\d{1,7})\b")
_SIGNED = re.compile(r"(?:signed-off-by|change-id|reviewed-by|git-svn-id):", re.IGNORECASE)
_ADDRESS = re.compile(r" ?<[^<>\s]{1,200}@[^<>\s]{1,200}>")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@ ?(.{0,300})")
_DEFINES = re.compile(
    r"\b(?:def|class|fn|func|fun|function|struct|enum|trait|interface|type|impl|module|namespace|object|record|protocol"
    r"|macro|sub|proc|defp?|defmodule|message|service)\s+(?:\([^()]{0,80}\)\s*)?([A-Za-z_$][\w$]{1,80})"
)
_CALLED = re.compile(r"([A-Za-z_$][\w$]{1,80})\s*\(")
_NO_NAME = frozenset({"if", "for", "while", "switch", "return", "catch", "else", "match", "with", "function"})


@dataclass(slots=True)
class _Change:
    """What a commit did to one file."""

    path: str
    status: str
    old: str = ""
    added: int = 0
    removed: int = 0
    names: dict[str, None] = field(default_factory=dict)

    def shown(self) -> str:
        """Return it in words: ``src/a.py (+10 −2: parse, Loader)``."""
        counts = " ".join(f"{sign}{count}" for sign, count in (("+", self.added), ("−", self.removed)) if count)
        said = {"A": "new", "D": "removed", "R": f"was {self.old}"}.get(self.status[:1], "")
        told = ", ".join(filter(None, (said, counts)))
        told = ": ".join(filter(None, (told, ", ".join(list(self.names)[:MAX_NAMES]))))
        return f"{self.path} ({told})" if told else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitHistory:
    """The newest commits of a branch, along its first parents.

    Attributes:
        root: a folder of the repository; only commits that changed something below it count.
        most: how many commits.
        since: how old they may be; ``None`` for any age.
        is_partial: the files of former commits are not here: of each its name is told, and nothing in it.
    """

    root: Path
    most: int
    since: timedelta | None = None
    timeout_s: float = 60.0
    is_partial: bool = False
    _changes: Lasting = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # How git finds the function that a change is in, by language.
        arguments = ("-c", f"core.attributesFile={_ATTRIBUTES}", *_DIFF, *(_PARTIAL if self.is_partial else _WHOLE))
        object.__setattr__(self, "_changes", Lasting(self.root, *arguments, timeout_s=self.timeout_s))

    def entries(self, commit: str, web: str | None = None) -> Iterator[Entry]:
        """List the commits up to this one, newest first, and the releases among them.

        Args:
            web: where people read the repository's files, see ``address.file_url``.

        Raises:
            GitFailedError: the repository cannot be read.
            SourceUnavailableError: git does not answer in time.
        """
        first_had, tags = self._releases(commit)
        after = [f"--since={(datetime.now(UTC) - self.since).isoformat()}"] if self.since else []
        listed = self._log(
            "--first-parent", f"--max-count={self.most}", *after, "--format=%H%x00%at%x00%aN", commit, "--", "."
        )
        for sha in listed:
            moment, author = since_1970(next(listed, "")), next(listed, "")
            release = first_had.get(sha, "")
            url = commit_url(web or "", sha)
            known = {"author": author or None, "url": url or None, "release": release or None}
            yield Entry(
                path=f"{COMMITS}{sha}",
                gate=GATE + digest(sha, release, str(self.is_partial)),
                updated_at=moment,
                revision=sha[:10],
                metadata=freeze(known),
            )
            if sha in tags:
                before = tags[sha]
                yield Entry(
                    path=f"{RELEASES}{release}",
                    gate=GATE + digest(before, sha),
                    updated_at=moment,
                    revision=sha[:10],
                    metadata=freeze({"url": url or None, "release": release, "before": before or None}),
                )

    def _releases(self, commit: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return the release that first had each commit along first parents; of each release's commit the one before.

        A release that was tagged on a branch is that of the commit which merged it.
        """
        parents, named = dict[str, list[str]](), dict[str, str]()
        fields = self._log("--decorate-refs=refs/tags/*", "--format=%H%x00%P%x00%D", commit)
        for sha in fields:
            parents[sha] = next(fields, "").split()
            names = (each.removeprefix("tag: ") for each in next(fields, "").split(", "))
            if name := next((name for name in names if name and released(name)), ""):
                named[sha] = name
        mainline = [next(iter(parents), "")]
        while mainline[-1] and (further := parents.get(mainline[-1])):
            mainline.append(further[0])
        tagged, seen = dict[str, str](), set[str]()
        for sha in reversed(mainline):
            merged = [sha]
            while merged:
                if (each := merged.pop()) in seen or each not in parents:
                    continue
                seen.add(each)
                merged += parents[each]
                if each in named and (each == sha or sha not in named):
                    tagged[sha] = max(tagged.get(sha, ""), named[each], key=released)
        first_had, tags, release, at = dict[str, str](), dict[str, str](), "", ""
        for sha in mainline:
            if sha in tagged:
                tags |= {at: sha} if at else {}
                release, at = tagged[sha], sha
            if release:
                first_had[sha] = release
        return first_had, tags | ({at: ""} if at else {})

    def _log(self, *arguments: str) -> Iterator[str]:
        options = ("log", "-z", "--no-ext-diff")
        return split_fields(stream_git(self.root, *options, *arguments, timeout_s=self.timeout_s, must_finish=True))

    def fetch(self, entry: Entry) -> bytes:
        """Read one commit or release.

        Raises:
            TransientDocumentError: git does not have it, or does not answer.
        """
        known = {key: value for key, value in entry.metadata.items() if key != "url"}
        if entry.path.startswith(RELEASES):
            listed = f"{entry.metadata.get('before') or ''}..{entry.revision}".removeprefix("..")
            arguments = ("log", "--first-parent", f"--max-count={MAX_LISTED}", "--format=%s (%h)", listed, "--", ".")
            try:
                said = run_git(self.root, *arguments, timeout_s=self.timeout_s)
            except GitFailedError as error:
                raise TransientDocumentError(f"git cannot list the commits of the release: {error}") from error
            return canonical_json({**known, "subjects": _decoded(said).splitlines()}).encode()
        sha = entry.path.removeprefix(COMMITS)
        message, changes = self._changes.ask(f"commit {sha}", lambda given, printed: _read_commit(sha, given, printed))
        return canonical_json({**known, **_described(message, changes, str(known.get("author", "")))}).encode()

    def close(self) -> None:
        """End the git process that ``fetch`` keeps."""
        self._changes.close()

    def entries_here(self) -> Iterator[Entry]:
        """List the commits of a folder in a work tree, none where git knows none.

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
        yield from self.entries("HEAD", template_of(origin_of(self.root, timeout_s=self.timeout_s)))


def history_document(source_id: SourceId, entry: Entry, raw: bytes) -> Document:
    """Make a document of what ``CommitHistory.fetch`` returned.

    Raises:
        DocumentError: it is something else.
    """
    try:
        said: Mapping[str, JsonValue] = json.loads(raw)
    except ValueError as error:
        raise DocumentError(f"no record of a commit: {error}") from error
    is_release = entry.path.startswith(RELEASES)
    title, text = _of_release(entry, said) if is_release else _of_commit(entry, said)
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
            "release": release,
            "tags": said.get("numbers") or None,
            "changed": said.get("paths") or None,
            "touches": said.get("touches") or None,
        }),
    )  # fmt: skip


def _of_release(entry: Entry, said: Mapping[str, JsonValue]) -> tuple[str, str]:
    subjects = [str(each) for each in _list(said.get("subjects"))]
    day = f" of {entry.updated_at:%Y-%m-%d}" if entry.updated_at else ""
    title = f"Release {said.get('release')}"
    return title, _cut(f"{title}{day} has {len(subjects)} commits:", [f"- {subject}" for subject in subjects], "\n")


def _of_commit(entry: Entry, said: Mapping[str, JsonValue]) -> tuple[str, str]:
    day = f" on {entry.updated_at:%Y-%m-%d}" if entry.updated_at else ""
    by = f" by {said['author']}" if said.get("author") else ""
    release = f", first released in {said['release']}" if said.get("release") else ""
    made = f"Committed{day}{by} as {entry.revision}{release}."
    subject, body = str(said["subject"]), str(said["body"])
    head = "\n\n".join(filter(None, (subject, body, made)))
    changed = [str(each) for each in _list(said.get("changes"))]
    return subject, _cut(f"{head}\n\nChanged:", [f"- {each}" for each in changed], "\n") if changed else head


def _cut(head: str, lines: Sequence[str], separator: str) -> str:
    """Return a head with as many lines as are short enough together, and how many others there are."""
    length, shown = len(head), list[str]()
    for line in lines:
        length += len(line) + 1
        if length > MAX_TEXT and shown:
            return separator.join((head, *shown, f"- and {len(lines) - len(shown):,} others"))
        shown.append(line)
    return separator.join((head, *shown))


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else ()


def _described(message: str, changes: Sequence[_Change], author: str) -> dict[str, JsonValue]:
    """Return what a commit says as a record; of a program's own commits the message is its first line."""
    subject, _, body = _ADDRESS.sub("", message.strip()).partition("\n")
    lines = [line for line in body.strip().splitlines() if not _SIGNED.match(line)]
    if _MERGED.match(subject) and lines:  # the title of what was merged says more
        number = _NUMBER.search(subject)
        subject, lines = lines[0] + (f" ({number[0]})" if number and number[0] not in lines[0] else ""), lines[1:]
    body = "" if _BOT.search(author) else "\n".join(lines).strip()
    if len(body) > MAX_BODY:
        body = body[:MAX_BODY].rpartition("\n")[0].rstrip() or body[:MAX_BODY]
        body += " …"
    names = dict.fromkeys(name for change in changes for name in change.names)
    return {
        "subject": subject.strip()[:300] or "(no message)",
        "body": body,
        "numbers": [f"#{number}" for number in dict.fromkeys(_NUMBER.findall(message))][:20],
        "changes": [change.shown() for change in changes],
        "paths": [path for change in changes for path in (change.path, change.old) if path][:MAX_LISTED],
        "touches": list(names)[:MAX_LISTED],
    }


def _read_commit(sha: str, given: IO[bytes], printed: IO[bytes]) -> tuple[str, list[_Change]]:
    """Ask a running ``git diff-tree --stdin`` for a commit; what is no object id it prints again, which ends an answer.

    Raises:
        OSError: it ended; ``ValueError``: it said too much, what was read before that is lost.
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
    current, left, right = None, 0, 0
    for line in lines:
        if left or right:
            is_removed = line.startswith(b"-")
            left, right = left - is_removed, right - line.startswith(b"+")
            if current and (found := _DEFINES.search(_decoded(line[1:400]))):
                current.names[found[1]] = None
        elif line.startswith(b":"):
            *_, status = line.split(b"\t")[0].split()
            paths = [_decoded(path) for path in line.rstrip(b"\n").split(b"\t")[1:]]
            kind = status.decode("ascii", "replace")
            changes[paths[-1]] = _Change(paths[-1], kind, paths[0] if kind.startswith("R") else "")
        elif line.startswith((b"--- a/", b"+++ b/")):
            current = changes.get(_decoded(line[6:]).rstrip("\n\t")) or current
        elif hunk := _HUNK.match(_decoded(line[:400])):
            left, right = (1 if count is None else int(count) for count in hunk.groups()[:2])
            if current:
                current.removed, current.added = current.removed + left, current.added + right
                _name_above(hunk[3], current.names)
        elif line.startswith(b"diff --git "):
            current = None
    return _decoded(b"".join(message)), list(changes.values())


def _lines(printed: IO[bytes], end: bytes) -> Iterator[bytes]:
    read = 0
    while (line := printed.readline()) != end:
        if not line:
            raise OSError("git ended")
        read += len(line)
        if read <= MAX_PATCH_BYTES:
            yield line


def _name_above(line: str, names: dict[str, None]) -> None:
    """Note what a hunk stands in, as git found it in a line above."""
    found = _DEFINES.search(line) or _CALLED.search(line)
    if found and found[1] not in _NO_NAME:
        names[found[1]] = None


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")
