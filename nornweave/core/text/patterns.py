"""Regular expressions that are compiled when they are first used: hundreds of them would slow down every start."""

from __future__ import annotations

import re
from typing import Any, cast

_MEMBERS = (
    "match", "search", "fullmatch", "finditer", "findall", "sub", "subn", "split", "pattern", "flags", "groupindex",
)  # fmt: skip


class _CompiledPattern:
    """A pattern after its first use; its members are those of the compiled pattern."""


class _LazyPattern(_CompiledPattern):
    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Compile the pattern and take over its members; without this method they are found as fast as any."""
        compiled = re.compile(self._source, self._flags)
        self.__dict__.update({member: getattr(compiled, member) for member in _MEMBERS})
        self.__class__ = _CompiledPattern  # type: ignore[assignment]
        return getattr(compiled, name)


def lazy_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled at its first use; an error in ``source`` shows up then.

    It has all members of a compiled pattern, but the functions of ``re`` do not accept it.
    """
    return cast("re.Pattern[str]", _LazyPattern(source, flags))
