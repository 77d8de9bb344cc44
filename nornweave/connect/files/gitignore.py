"""Match ``.gitignore`` files as git does, level by level, without entering ignored directories.

``pathspec`` 1.1 is not used, for two reasons. It differs from git for directories: given ``*`` and ``!*/`` it calls the
directory ``a/`` ignored, and pruning by that would lose every whitelisted file below. And its expressions backtrack:
the rule ``*a*a*a*a*a*a*a*a*a*a*a*ab`` takes more than a minute to say that forty letters ``a`` do not match. The tests
compare this module with ``git ls-files``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

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
