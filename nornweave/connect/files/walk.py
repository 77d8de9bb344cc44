"""Walk a folder of files without leaving it, and match ``.gitignore`` files as git does, level by level.

Ignored directories are not entered. ``pathspec`` 1.1 is not used for that, for two reasons. It differs from git for
directories: given ``*`` and ``!*/`` it calls the directory ``a/`` ignored, and pruning by that would lose every
whitelisted file below. And its expressions backtrack: the rule ``*a*a*a*a*a*a*a*a*a*a*a*ab`` takes more than a minute
to say that forty letters ``a`` do not match. The tests compare this module with ``git ls-files``.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

from nornweave.connect.files.skip import EXCLUDED, Rules
from nornweave.connect.git.tree import WorkTree, look_at, repository_above
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.files.paths import Within, folders_above, is_text, printable
from nornweave.core.text.dates import since_1970
from nornweave.core.types import Entry, Listing, Skip

LINK = "link: to "
"""Of a link inside of a source; what is said of its target follows when that is known, see ``ingest.left_out``."""

MAX_RULES = 10_000
"""Rules of all different ``.gitignore`` files of a source: every file is compared with those above it."""
MAX_FILE_CHARACTERS = 1024 * 1024
MAX_RULE_CHARACTERS = 1_000
MAX_CHARACTERS = 256 * 1024
"""Characters of all these rules; comments and blank lines do not count."""

_ONE = "[^/]"
_MANY = "[^/]*"
_END = "(?![^/])"  # the end of a path component: a slash or nothing follows
# The tokens of a pattern. A final backslash or an unclosed bracket is invalid in git.
_TOKEN = re.compile(
    r"\\(?P<escaped>.)|(?P<stars>\*+)|(?P<one>\?)|(?P<plain>[^\\\[])"
    r"|\[(?P<negated>[!^]?)(?P<members>\]?(?:\\.|[^\]\\])*+)\]",
    re.DOTALL,
)
_MEMBER = re.compile(r"(?P<low>\\.|.)-(?P<high>\\.|.)|(?P<single>\\.|.)", re.DOTALL)
_SLASHES = frozenset({"/", "\\/"})


def entry_of(path: str, status: os.stat_result) -> Entry:
    """Return a file's entry from the file system.

    The gate has the size, the modification time and, after ``@``, the inode's change time. Copies and archives may keep
    the first two, but nobody can set the change time back. The part before ``@`` stays the same when a file is moved.
    """
    size, changed_at = status.st_size, status.st_mtime_ns
    gate = f"{size}-{changed_at}-{status.st_ino}@{status.st_ctime_ns}"
    return Entry(path=path, gate=gate, size=size, updated_at=since_1970(changed_at / 1e9))


def walk(root: str, rules: Rules, *, ignores: bool, within: Within | None = None) -> Listing:
    """List the files below a directory that the rules accept.

    Symlinks are left out. Their targets are listed at their own place, if they belong to the source.

    Args:
        root: a resolved directory.
        rules: which files and directories are left out.
        ignores: leave out the files that git ignores. If git cannot be asked, the ``.gitignore`` files decide: those in
            ``root``, below it, and above it in its repository.
        within: look only at these paths, and at the folders that lead to them.

    Returns:
        Files by path, and a skip for each file that is left out. A directory that is not entered is one skip, whose
        path ends with a slash.

    Raises:
        SourceUnavailableError: a directory or a ``.gitignore`` cannot be read, so its content is unknown; or the
            ``.gitignore`` files have more rules than ``IgnoreFiles`` reads.
    """
    walker = _Walker(root, rules, ignores=ignores, within=within)
    walker.run()
    by_path = attrgetter("path")
    return Listing(
        tuple(sorted(walker.entries, key=by_path)),
        tuple(sorted(walker.skipped, key=by_path)),
        within=within and Within(frozenset(path for path in within.paths if not walker.is_left_out(path))),
    )


@dataclass(frozen=True, slots=True)
class _Folder:
    """A directory in the walk. Its prefix is empty or ends with a slash.

    Attributes:
        ignores: the ``.gitignore`` files that apply to it. Each has its folder, the prefix that makes a path relative
            to that folder's repository, its own path and its rules.
        git: the prefix of the folder's work tree, and the paths that git tracks and ignores in it.
    """

    prefix: str
    ignores: tuple[tuple[int, str, str, IgnoreFile], ...] = ()
    git: tuple[str, WorkTree] | None = None


class _Walker:
    def __init__(self, root: str, rules: Rules, *, ignores: bool, within: Within | None) -> None:
        self.entries: list[Entry] = []
        self.skipped: list[Skip] = []
        self._within = within
        self._on_the_way = {folder for path in within.paths for folder in folders_above(path)} if within else set()
        self._left_out: set[str] = set()
        self._root = root
        self._rules = rules
        self._ignores = ignores
        self._ignore_files = IgnoreFiles()
        self._pending: list[_Folder] = []

    def run(self) -> None:
        first = _Folder("")
        if self._ignores:
            first = self._with_git(first) if repository_above(self._root) else first
            first = first if first.git else self._with_ignore_files_above(first)
        self._pending.append(first)
        while self._pending:  # not recursive: folders may lie deeper than Python's stack
            folder = self._pending.pop()
            entries = self._scan(folder)
            if self._ignores:
                if folder.prefix and any(entry.name == ".git" for entry in entries):
                    folder = self._with_git(_Folder(folder.prefix))
                folder = folder if folder.git else self._with_ignore_file(folder, entries)
            for entry in entries:
                if self._is_asked_for(folder.prefix + entry.name):
                    self._visit(folder, entry)

    def is_left_out(self, path: str) -> bool:
        """Tell whether a rule leaves out a folder above a path."""
        return not self._left_out.isdisjoint(folders_above(path))

    def _is_asked_for(self, path: str) -> bool:
        return self._within is None or path in self._on_the_way or self._within.holds(path)

    def _scan(self, folder: _Folder) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(os.path.join(self._root, folder.prefix)) as entries:  # noqa: PTH118
                return list(entries)
        except (FileNotFoundError, NotADirectoryError):
            if folder.prefix:
                return []  # removed while we were listing: its documents are gone indeed
            raise _unreadable(self._root, "", "it is gone") from None
        except OSError as error:
            raise _unreadable(self._root, folder.prefix, error.strerror) from error

    def _with_git(self, folder: _Folder) -> _Folder:
        """Return the folder with git's answer about the work tree that begins in it."""
        tree = look_at(os.path.join(self._root, folder.prefix))  # noqa: PTH118
        if tree is None:
            return folder
        self._rules.tracked.update(folder.prefix + path for path in tree.tracked)
        return _Folder(folder.prefix, git=(folder.prefix, tree))

    def _with_ignore_files_above(self, folder: _Folder) -> _Folder:
        """Return the folder with the ``.gitignore`` files above the source, which are read if git cannot be asked."""
        top = repository_above(self._root)
        ignores = []
        place = os.path.relpath(self._root, top) if top else "."
        inner = [] if place == "." else place.split("/")
        names = [".git/info/exclude", *("/".join([*inner[:end], ".gitignore"]) for end in range(len(inner)))]
        for name in names if top else ():
            start = 0 if name.startswith(".git/") else len(name) - len(".gitignore")
            with suppress(FileNotFoundError, NotADirectoryError):
                ignores.append((start, "/".join([*inner, ""]), name, self._read_rules(f"{top}/{name}", "")))
        return _Folder(folder.prefix, tuple(ignores))

    def _with_ignore_file(self, folder: _Folder, entries: Iterable[os.DirEntry[str]]) -> _Folder:
        path = folder.prefix + ".gitignore"
        if not any(entry.name == ".gitignore" and entry.is_file(follow_symlinks=False) for entry in entries):
            return folder
        try:
            rules = self._read_rules(os.path.join(self._root, path), folder.prefix)  # noqa: PTH118
        except FileNotFoundError:
            return folder
        return _Folder(folder.prefix, (*folder.ignores, (len(folder.prefix), "", path, rules)))

    def _read_rules(self, file: str, prefix: str) -> IgnoreFile:
        try:
            with open(file, "rb") as opened:  # noqa: PTH123
                raw = opened.read(MAX_FILE_CHARACTERS + 1)
            return self._ignore_files.read(raw.decode("utf-8", "surrogateescape"))
        except (FileNotFoundError, NotADirectoryError):
            raise
        except OSError as error:
            raise _unreadable("", file, error.strerror) from error
        except ValueError as error:
            raise _too_long(file, prefix, error) from error

    def _visit(self, folder: _Folder, entry: os.DirEntry[str]) -> None:
        path = folder.prefix + entry.name
        try:
            is_directory = entry.is_dir(follow_symlinks=False)
            reason = self._reason_to_skip(folder, entry, path, is_directory=is_directory)
            if reason is not None and path in self._on_the_way:
                self._left_out.add(path)
            if reason:
                self.skipped.append(Skip(printable(f"{path}/" if is_directory else path), reason))
            elif is_directory and reason is None:
                self._pending.append(_Folder(f"{path}/", folder.ignores, folder.git))
            elif reason is None:
                self._take(path, entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            return  # removed while we were listing
        except OSError as error:
            raise _unreadable(self._root, folder.prefix, error.strerror) from error

    def _reason_to_skip(self, folder: _Folder, entry: os.DirEntry[str], path: str, *, is_directory: bool) -> str | None:
        """Return why an entry is left out; ``None`` if it is read.

        The reason is ``""`` if the entry is left out without a report.
        """
        if not is_text(entry.name):
            return "name: the file name is not valid UTF-8; rename it"
        if is_directory and (reason := self._rules.skip_directory(path)) is not None:
            return reason
        if entry.is_symlink():  # somebody may expect a linked folder to be read
            return EXCLUDED if self._rules.prunes(path) else f"{LINK}{printable(os.readlink(entry.path))}"  # noqa: PTH115
        return _ignored_by(folder, path, entry.name, is_directory=is_directory)

    def _take(self, path: str, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            self.skipped.append(Skip(path, "special: not a regular file"))
            return
        is_program = bool(status.st_mode & stat.S_IXUSR)
        if reason := self._rules.skip_file(path, status.st_size, is_program=is_program):
            self.skipped.append(Skip(path, reason))
        else:
            self.entries.append(entry_of(path, status))


def _ignored_by(folder: _Folder, path: str, name: str, *, is_directory: bool) -> str | None:
    """Return a reason if git ignores an entry, else ``None``.

    The deepest ``.gitignore`` with a matching rule decides.
    """
    if folder.git is not None:
        start, tree = folder.git
        inner = path.removeprefix(start)
        return "ignored: git ignores it" if (f"{inner}/" if is_directory else inner) in tree.ignored else None
    for begin, above, file, rules in reversed(folder.ignores):
        verdict = rules.verdict(f"{above}{path}"[begin:], name, is_directory=is_directory)
        if verdict is not None:
            return f"ignored: by {file}" if verdict else None
    return None


def _unreadable(root: str, path: str, reason: str | None) -> SourceUnavailableError:
    where = os.path.join(root, path).rstrip("/")  # noqa: PTH118
    return SourceUnavailableError(
        f"{printable(where)!r} cannot be read: {reason or 'unknown error'}. What it holds is unknown, so nothing "
        "counts as deleted; give read and search permission, or name it in exclude."
    )


def _too_long(file: str, prefix: str, reason: ValueError) -> SourceUnavailableError:
    folder = f"name {printable(prefix)!r} in exclude" if prefix else "make sources of its folders"
    return SourceUnavailableError(
        f"{printable(file)!r} is not read: {reason}. What it ignores is unknown, so nothing of "
        f"the source is read and nothing counts as deleted; mend it, or {folder}."
    )


@dataclass(frozen=True, slots=True)
class _Rule:
    regex: re.Pattern[str]
    ignores: bool
    directories_only: bool
    by_name: bool


class IgnoreFiles:
    """The ``.gitignore`` files of one source. They share a size limit and a cache of translated rules.

    The translations stay in the cache for the life of the process, because they take most of the time of listing a
    folder.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._rules = 0
        self._characters = 0

    def read(self, text: str) -> IgnoreFile:
        """Return the rules of a file.

        Raises:
            ValueError: the file is longer than ``MAX_FILE_CHARACTERS``, a rule is longer than ``MAX_RULE_CHARACTERS``,
                or all files read so far have more than ``MAX_RULES`` rules or ``MAX_CHARACTERS`` characters. The
                message has a remedy.
        """
        if len(text) > MAX_FILE_CHARACTERS:
            raise ValueError(f"it is larger than {MAX_FILE_CHARACTERS:,} characters")
        lines = text.removeprefix("\ufeff").split("\n")
        rules = [line for line in lines if _is_rule(line)]
        if any(len(line) > MAX_RULE_CHARACTERS for line in rules):
            raise ValueError(f"a rule is longer than {MAX_RULE_CHARACTERS:,} characters; shorten it")
        key = "\n".join(rules)
        if key not in self._known:
            self._rules, self._characters = self._rules + len(rules), self._characters + len(key)
            if self._rules > MAX_RULES or self._characters > MAX_CHARACTERS:
                raise ValueError(
                    f"the rules of this source are more than {MAX_RULES:,}, or longer than {MAX_CHARACTERS:,} "
                    "characters together; replace lists of files by patterns"
                )
            self._known.add(key)
        return _translated(key)


def _is_rule(line: str) -> bool:
    return not line.startswith("#") and line.strip(" \r") != ""


@lru_cache(maxsize=1_024)
def _translated(rules: str) -> IgnoreFile:
    return IgnoreFile(rules)


class IgnoreFile:
    """The rules of one ``.gitignore``."""

    def __init__(self, text: str) -> None:
        lines = text.removeprefix("\ufeff").split("\n")
        # The last rule that matches decides, so they are asked from the end.
        self._rules = tuple(rule for line in reversed(lines) if (rule := _rule(line)) is not None)
        self._any_name = _any_of(rule for rule in self._rules if rule.by_name)
        self._any_path = _any_of(rule for rule in self._rules if not rule.by_name)

    def verdict(self, path: str, name: str, *, is_directory: bool) -> bool | None:
        """Return what the file says about an entry.

        Args:
            path: relative to the directory of the ``.gitignore``. No directory above the path may be ignored.
            name: the last component of ``path``.
            is_directory: ``False`` for a symlink to a directory.

        Returns:
            ``True`` if the entry is ignored, ``False`` if a ``!`` rule includes it again, ``None`` if no rule matches.
        """
        if not (self._any_name.match(name) or self._any_path.match(path)):
            return None
        for rule in self._rules:
            if (is_directory or not rule.directories_only) and rule.regex.match(name if rule.by_name else path):
                return rule.ignores
        return None


def _any_of(rules: Iterable[_Rule]) -> re.Pattern[str]:
    """Join the rules into one expression, because most entries match none of them."""
    patterns = [rule.regex.pattern for rule in rules]
    return re.compile("|".join(patterns) if patterns else r"(?!)")


def _rule(line: str) -> _Rule | None:
    """Return the rule in one line; ``None`` for a comment, a blank line or a line that git rejects."""
    line = _without_trailing_spaces(line.removesuffix("\r"))
    if not line or line.startswith("#"):
        return None
    pattern = line.removeprefix("!")
    directories_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    by_name = "/" not in pattern
    try:
        regex = re.compile(_path(_split(pattern.removeprefix("/"))), re.DOTALL)
    except (ValueError, re.error):
        return None
    return _Rule(regex, ignores=not line.startswith("!"), directories_only=directories_only, by_name=by_name)


def _without_trailing_spaces(line: str) -> str:
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    escaped = backslashes % 2 == 1 and len(stripped) < len(line)
    return stripped + " " if escaped else stripped


def _split(pattern: str) -> list[list[re.Match[str]]]:
    """Split a pattern into components. A slash inside brackets does not split.

    Raises:
        ValueError: git rejects the pattern, so the rule ignores nothing.
    """
    components: list[list[re.Match[str]]] = [[]]
    end = 0
    for token in _TOKEN.finditer(pattern):
        if token.start() != end:
            break
        end = token.end()
        if token[0] in _SLASHES:
            components.append([])
        else:
            components[-1].append(token)
    if end != len(pattern):
        raise ValueError(pattern)
    return components


def _path(components: list[list[re.Match[str]]]) -> str:
    """Translate an anchored pattern. In it ``**`` stands for any number of whole components.

    The pattern between two ``**`` matches a fixed number of components. Its leftmost match is therefore as good as any
    other, and the group may be atomic. This keeps the search fast for every pattern.
    """
    groups: list[list[str]] = [[]]
    for component in components:
        if len(component) == 1 and len(component[0]["stars"] or "") >= 2:
            groups.append([])
        else:
            groups[-1].append(_component(component))
    first, *rest = ["/".join(group) for group in groups]
    if not rest:
        return rf"{first}\Z"
    parts = [f"{first}/" if first else ""]
    parts += [rf"(?>(?:[^/]*/)*?{middle}/)" for middle in rest[:-1] if middle]
    parts.append(rf"(?:[^/]*/)*{rest[-1]}\Z" if rest[-1] else r"(?=[^/])")
    return "".join(parts)


def _component(tokens: Iterable[re.Match[str]]) -> str:
    """Translate one component of a pattern to an expression that matches a whole component of a path.

    The text between two stars matches a fixed number of characters.
    """
    runs = [""]
    for token in tokens:
        if token["stars"]:
            runs.append("")
        else:
            runs[-1] += _one(token)
    first, *rest = runs
    if not rest:
        return first + _END
    middle = "".join(rf"(?>{_MANY}?{run})" for run in rest[:-1] if run)
    return f"{first}{middle}{_MANY}{rest[-1]}{_END}"


def _one(token: re.Match[str]) -> str:
    """Translate the pattern of one character. A class such as ``[:alpha:]`` makes its rule ignore nothing."""
    if token["members"] is None:
        return _ONE if token["one"] else re.escape(token["escaped"] or token["plain"])
    if "[:" in token["members"]:
        raise ValueError(token[0])
    members = "".join(
        re.escape(each["single"][-1])
        if each["single"]
        else f"{re.escape(each['low'][-1])}-{re.escape(each['high'][-1])}"
        for each in _MEMBER.finditer(token["members"])
    )
    return f"(?!/)[{'^' if token['negated'] else ''}{members}]"
