"""The names that import statements bring into a file, read from the statements' text."""

from __future__ import annotations

import re
from collections.abc import Callable

_COMMENT = re.compile(r"//[^\n]*|/\*[^*]{0,500}\*/")
_HASH_COMMENT = re.compile(r"#[^\n]*")
_WORD = re.compile(r"[^\W\d][\w$]*")
_ITEM = re.compile(r"[{},;()\n]")
_ALIAS = re.compile(r"\bas\s+(\w+)")
_STRING = re.compile(r"""['"`]([^'"`\n]*)['"`]""")
_GO_SPEC = re.compile(r"""(?:(\w+|\.)[ \t]+)?["`]([^"`\n]+)["`]""")
_PYTHON_IMPORT = re.compile(r"\b(from\b[^\n]*?)?\bimport\b[ \t]*(?:\(([^)]*)\)|([^\n]*))")
_VERSION = re.compile(r"v\d+")
_NOISE = frozenset({"import", "type", "typeof", "static", "function", "const", "use", "pub", "crate", "super", "from"})


def imported_names(statement: str, language: str) -> set[str]:
    """Name what one import statement makes available; empty where the statement does not say (``#include``, ``*``)."""
    comment = _HASH_COMMENT if language in {"python", "ruby"} else _COMMENT
    # A URL inside quotes is not a comment: Go and JavaScript quote what they import from.
    stripped = statement if language == "go" else comment.sub("", statement)
    return _READERS.get(language, _dotted)(stripped)


def _python(text: str) -> set[str]:
    names = set()
    for prefix, listed, rest in _PYTHON_IMPORT.findall(text.replace("\\\n", " ")):
        plain = not prefix
        for item in re.split(r"[,\n;]", listed or rest):
            alias = _ALIAS.search(item)
            words = _WORD.findall(item)
            if words:
                names.add(alias[1] if alias else words[0] if plain else words[-1])
    return names


def _ecma(text: str) -> set[str]:
    bound = re.split(r"\bfrom\s*['\"]|=\s*(?:await\s+)?(?:require|import)\b", text)[0]
    bound = re.sub(r"^\s*(?:import|const|let|var|export)\b", "", bound)
    return _last_words(re.sub(r"\w+\s*:", "", bound))


def _go(text: str) -> set[str]:
    names: set[str] = set()
    for alias, path in _GO_SPEC.findall(text):
        if alias and alias not in {"import", "."}:
            names.add(alias)
            continue
        parts = [part for part in path.split("/") if not _VERSION.fullmatch(part)] or [path]
        names.update(word for word in re.split(r"\W", re.sub(r"\.v\d+$", "", parts[-1])) if word != "go")
    return names - {"_", ""}


def _rust(text: str) -> set[str]:
    text = re.sub(r"(\w+)\s*::\s*\{\s*self\b", r"{\1", text)
    return _last_words(text)


def _ruby(text: str) -> set[str]:
    """Guess the constants that a required file defines: ``active_support/core_ext`` → ActiveSupport, CoreExt."""
    names = set()
    for path in _STRING.findall(text):
        for part in path.split("/"):
            names.update({"".join(word[:1].upper() + word[1:] for word in re.split(r"[_\-]", part)), part.upper()})
    return {name for name in names if _WORD.fullmatch(name)}


def _dotted(text: str) -> set[str]:
    return _last_words(re.sub(r"(\w+)\s*=[^;]*", r"\1", text))


def _last_words(text: str) -> set[str]:
    """Take the last word of each item of a list like ``a.b.{C, D as E}``; items that end in ``*`` bind nothing."""
    names = set()
    for item in _ITEM.split(text):
        words = _WORD.findall(item)
        star = item.rstrip().endswith("*") or item.rstrip().endswith(("::", "\\", "."))
        if words and not star and words[-1] not in _NOISE and '"' not in item and "'" not in item and "<" not in item:
            names.add(words[-1])
    return names


_READERS: dict[str, Callable[[str], set[str]]] = {
    "python": _python,
    "javascript": _ecma,
    "typescript": _ecma,
    "go": _go,
    "rust": _rust,
    "ruby": _ruby,
    # Only aliases name something: a namespace does not say what is in it.
    "csharp": lambda text: set(re.findall(r"\busing\s+(\w+)\s*=", text)),
    "c": lambda _: set(),
}
