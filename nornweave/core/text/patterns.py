"""Regular expressions that are compiled at first use: compiling hundreds of them would slow down every start."""

from __future__ import annotations

import re
from typing import Any, cast

_MEMBERS = (
    "match", "search", "fullmatch", "finditer", "findall", "sub", "subn", "split", "pattern", "flags", "groupindex",
)  # fmt: skip


class _CompiledPattern:
    """A lazy pattern after its first use. It has the members of the compiled pattern."""


class _LazyPattern(_CompiledPattern):
    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Compile the pattern and copy its members to this object, so that this method is not called again."""
        compiled = re.compile(self._source, self._flags)
        self.__dict__.update({member: getattr(compiled, member) for member in _MEMBERS})
        self.__class__ = _CompiledPattern  # type: ignore[assignment]
        return getattr(compiled, name)


def lazy_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled at its first use. An error in ``source`` is raised at that moment.

    It has all members of a compiled pattern, but the functions of ``re`` do not accept it.
    """
    return cast("re.Pattern[str]", _LazyPattern(source, flags))
