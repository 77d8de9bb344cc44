"""Find ``drift-ignore`` comments, which suppress a finding."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.names import read_name

MAX_LINE = 2_000
_MARK = lazy_pattern(r"\bdrift-ignore(?![\w-])(?:[ \t]{0,4}:[ \t]{0,4}(?P<names>[^\s,*#;<>\-][^*#;<>]{0,200}))?")


def is_ignored(lines: Sequence[str], line: int, names: Collection[str]) -> bool:
    """Tell whether a line is marked, by itself or by the line above.

    Args:
        lines: of the file.
        line: from 1.
        names: canonical names of what is said there; a mark that names others (``drift-ignore: port``) does not count.
    """
    return any(
        _ignores(lines[number - 1], names) for number in (line - 1, line) if 0 < number <= len(lines)
    )  # fmt: skip


def _ignores(text: str, names: Collection[str]) -> bool:
    if "drift-ignore" not in text:
        return False
    for match in _MARK.finditer(text[:MAX_LINE]):
        if not match["names"]:
            return True
        for written in match["names"].replace("--", " ").split(","):
            name = read_name(written.strip())
            if name is not None and name.name in names:
                return True
    return False
