"""Table of the lines of manifests that state a version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

_SHORT = {
    # A version alone; a requirement in quotes, of one or two clauses; the name of a package.
    "{v}": r"(?P<version>v?\d[\w.]{0,30})",
    "{req}": r"[\"'](?P<version>[<>=~^ ]{0,4}\d[\w.]{0,30}(?:[\"'],[ ]?[\"'][<>=~ ]{1,4}\d[\w.]{0,30})?)[\"']",
    "{n}": r"(?P<name>[A-Za-z][\w.\-]{0,79})",
}


@dataclass(frozen=True, slots=True)
class LinePattern:
    """A pattern for the lines of files of these names.

    Attributes:
        files: names, lower case, blanks between them; ``*.x`` is any name that ends so, ``x*`` any that starts so.
        pattern: with ``{v}`` for a version, ``{req}`` for a quoted requirement, ``{n}`` for a name.
        name: of the thing; empty: the pattern has ``{n}``.
    """

    files: str
    pattern: str
    name: str = ""

    def compiled(self) -> re.Pattern[str]:
        """Return the pattern with its abbreviations written out."""
        pattern = self.pattern
        for short, long in _SHORT.items():
            pattern = pattern.replace(short, long)
        return re.compile(pattern, re.MULTILINE)


_TABLE = (
    LinePattern("setup.py setup.cfg", r"python_requires[ ]?=[ ]?[\"'](?P<version>[^\"'\n]{1,80})[\"']", "python"),
    LinePattern(
        "setup.py",
        r"sys\.version_info(?:\[:[23]\])?[ ]?<[ ]?\((?P<version>\d,[ ]?\d{1,2})[^)\n]{0,10}\)[^\n]{0,80}\n"
        r"(?:[^\n]{0,200}\n){0,8}?[ \t]+(?:sys\.exit|raise)\b",
        "python",
    ),
    LinePattern("go.mod", r"^go[ ]{v}", "go"),
    LinePattern(
        "go.mod",
        r"^(?:require)?[ \t]+(?:[\w.\-~]{1,80}/){1,8}?{n}(?:/v\d{1,3})?[ ]{v}(?![^\n]{0,40}// indirect)",
    ),
    LinePattern("gemfile", r"^[ ]{0,8}ruby[ (][ ]{0,4}{req}", "ruby"),
    LinePattern("gemfile", r"^[ ]{0,8}gem[ (][ ]{0,4}[\"']{n}[\"'],[ ]{0,8}{req}"),
    LinePattern("*.gemspec", r"required_ruby_version[ ]{0,4}=[^\n\"']{0,40}{req}", "ruby"),
    LinePattern("*.gemspec", r"add_(?:runtime_)?dependency[ (][ ]{0,4}[\"']{n}[\"'],[ ]{0,8}{req}"),
    LinePattern(
        "pom.xml",
        r"<(?:maven\.compiler\.(?:source|release|target)|java\.version|jdk\.version)>\s{0,9}{v}\s{0,9}</",
        "java",
    ),
    LinePattern(
        "*.gradle *.gradle.kts",
        r"\b(?:source|target)Compatibility[ ]?=?[ ]?[\"']?(?:JavaVersion\.VERSION_)?{v}",
        "java",
    ),
    LinePattern("*.gradle *.gradle.kts", r"\b(?:JavaLanguageVersion\.of|jvmToolchain)\({v}\)", "java"),
    LinePattern("*.csproj", r"<TargetFramework>\s{0,9}net(?:coreapp)?{v}", "dotnet"),
    LinePattern("cmakelists.txt", r"^[ \t]{0,20}cmake_minimum_required[ ]?\([ ]?VERSION[ ]{v}", "cmake"),
    LinePattern("package.swift", r"^//[ ]?swift-tools-version:[ ]?{v}", "swift"),
    LinePattern(
        "requirements.txt requirements.in base.txt base.in",
        r"^{n}(?:\[[\w,. -]{0,80}\])?[ ]?(?P<version>[<>=!~][<>=!~\w.*, ]{1,80})",
    ),
)
_PATTERNS = tuple((line.files.split(), line.compiled(), line) for line in _TABLE)


def name_fits(name: str, wanted: list[str]) -> bool:
    """Tell whether a lower-case file name is one of these; ``*`` may stand at either end."""
    return any(
        name.endswith(one[1:]) if one[0] == "*" else name.startswith(one[:-1]) if one[-1] == "*" else name == one
        for one in wanted
    )


@lru_cache(maxsize=1024)
def patterns_of(path: str) -> tuple[tuple[re.Pattern[str], LinePattern], ...]:
    """Return the patterns for the lines of a file, by its name."""
    name = PurePosixPath(path).name.lower()
    return tuple((pattern, line) for files, pattern, line in _PATTERNS if name_fits(name, files))
