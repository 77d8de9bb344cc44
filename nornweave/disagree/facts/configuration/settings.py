"""Turn entries of configuration into facts: settings and defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from pathlib import PurePosixPath

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Fact
from nornweave.disagree.facts.configuration.entries import Entry
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.passage import SECRET, Passage, fact_of
from nornweave.disagree.facts.values import Value

MAX_VALUE = 200
MAX_BLANKS = 4
"""In the text of a value: more make a description."""

_LOGIN = lazy_pattern(r"://[^/\s:@]{0,100}:[^/\s@]{1,200}@|-----BEGIN ")
_NUMBER = lazy_pattern(
    r"[-+]?(?:0x[0-9a-fA-F]{1,16}|[\d_]{1,30}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?)"
    r"(?: ?[A-Za-zµ%]{1,12}|(?:[hms]{1,2}\d{1,6}){1,3}m?s)?$"
)
_WORDS = frozenset("true false yes no on off null none nil undefined unlimited infinity ~".split())  # noqa: SIM905
_DYNAMIC = ("${", "{{", "<%", "$(", "%(", "}}")
_WITH_FALLBACK = lazy_pattern(
    r"^\"?\$\{(?P<name>[A-Za-z_][\w.]{0,79})(?::-|:=|:(?![?+])|-)(?P<value>[^{}$]{1,100})\}\"?$"
)
# ``port = integer(min=1, default=6379)`` of a specification (configobj): what may be set, and what holds without.
_SPECIFIED = lazy_pattern(
    r"[a-z_]\w{0,40}\((?:[^\n]{0,200},)?\s*default\s*=\s*(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s,()\"']+)\)$"
)
_EXAMPLE = lazy_pattern(r"example|sample|template|\.dist\b", re.IGNORECASE)
_DEFAULTS = lazy_pattern(r"(?:^|[/._-])defaults?(?:[/._-]|$)|(?:^|/)values\.ya?ml$", re.IGNORECASE)
_PROSE_KEYS = frozenset("about description title summary name label help comment message text documentation".split())  # noqa: SIM905
_DEFINITION = frozenset({"type", "default"})
_STRUCTURE = frozenset({"properties", "fields", "options", "items", "schema", "definitions", "docker"})


def value_of(raw: str) -> Value | None:
    """Read a plain value of a configuration file, not an expression: ``30s``, ``"a"``, ``off``, ``a-b``.

    Returns:
        The value; ``None`` if the text is empty or an expression, is filled in later (``${NAME}``) or is too long.
    """
    text = raw.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    if quoted:
        text = text[1:-1]
    if len(text) > MAX_VALUE or any(mark in text for mark in _DYNAMIC) or _LOGIN.search(text):
        return None
    if quoted:
        return Value("string", text)
    if not text:
        return None
    if text.lower() in _WORDS:
        return read_value("null" if text == "~" else text)
    if _NUMBER.match(text):
        return read_value(text) or Value("string", text)
    return Value("string", text)


def is_secret(entry: Entry) -> bool:
    """Tell whether a setting may be a secret. Its value is never stored.

    ``max_tokens: 4096`` is not a secret, because its number counts tokens.
    """
    inner = entry.value.split()[:-1]  # ``proxy_set_header X-Api-Key …``
    names = "/".join((*entry.parents[-2:], entry.key, " ".join((*inner, "…"))))
    if not SECRET.search(names):
        return False
    last = [word for word in words_of(entry.key) if not word.isdigit()][-1:]
    is_count = re.fullmatch(r"[-+]?\d[\w.]*|true|false|yes|no|on|off", entry.value, re.IGNORECASE) is not None
    return not is_count or bool(last and SECRET.search(last[0]) and not last[0].endswith("s")) or "key" in last


def without_descriptions(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries without those that only describe a setting, if it is defined with its type and its default.

    For example, ``timeout: {type: {name: Int, minval: 0}, default: 3000}`` has only the entry with the default.
    """
    read = list(entries)
    keys: dict[tuple[str, ...], set[str]] = {}
    for entry in read:
        path = (*entry.parents, entry.key)
        for depth in range(1, len(path)):
            keys.setdefault(path[:depth], set()).add(path[depth])
    defined = {path for path, below in keys.items() if below >= _DEFINITION}
    return [
        entry
        for entry in read
        if (entry.parents not in defined and not any(entry.parents[:at] in defined for at in range(len(entry.parents))))
        or (entry.key == "default" and entry.parents in defined)
    ]


def setting_facts(passage: Passage, entry: Entry) -> Iterator[Fact]:
    """Yield the fact of an entry; two facts if it has a variable with a fallback (``timeout: ${TIMEOUT:30}``).

    Settings in example files or in comments have the form ``example``, because they are not in force.
    """
    if is_secret(entry):
        return
    if specified := _SPECIFIED.match(entry.value):
        value = value_of(specified["value"].strip("\"'"))
        found = value and fact_of(
            passage, name=entry.key, attribute="default", side="code", form="option", value=value, start=entry.start,
            end=entry.end, statement=passage.text[entry.start : entry.end], owner=" > ".join(entry.parents),
        )  # fmt: skip
        if found:
            yield found
        return
    fallback = _WITH_FALLBACK.match(entry.value)
    value = value_of(fallback["value"] if fallback else entry.value)
    if value is not None:
        for fact in _facts(passage, entry, value, fallback["name"] if fallback else ""):
            if fact is not None:
                yield fact


def _facts(passage: Passage, entry: Entry, value: Value, variable: str) -> Iterator[Fact | None]:
    made = partial(
        fact_of, passage, value=value, start=entry.start, end=entry.end, statement=passage.text[entry.start : entry.end]
    )
    if entry.is_remark or _EXAMPLE.search(PurePosixPath(passage.path).name):
        yield made(
            name=entry.key, attribute="setting", side="configuration", form="example", owner=" > ".join(entry.parents)
        )
        return
    if variable:
        yield made(name=variable, attribute="default", side="configuration", form="fallback")
    is_prose = value.kind == "string" and (value.text.count(" ") > MAX_BLANKS or entry.key.lower() in _PROSE_KEYS)
    if is_prose or (entry.key != "default" and "properties" in entry.parents):  # what else a schema says
        return
    if entry.key == "default" and entry.parents and entry.parents[-1] not in _STRUCTURE:
        *above, name = (key for key in entry.parents if key not in _STRUCTURE)
        yield made(name=name, attribute="default", side="code", form="option", owner=" > ".join(above))
        return
    attribute: Attribute = "default" if variable or _is_of_defaults(passage.path) else "setting"
    owner = " > ".join(entry.parents)
    yield made(name=entry.key, attribute=attribute, side="configuration", form="setting", owner=owner)


@lru_cache(maxsize=1024)
def _is_of_defaults(path: str) -> bool:
    return _DEFAULTS.search(path) is not None
