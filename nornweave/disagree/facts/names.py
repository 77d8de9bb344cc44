"""Normalise names: ``requestTimeoutMs``, ``--request-timeout``, ``KAFKA_REQUEST_TIMEOUT`` → words, unit, join keys.

Both sides of a real disagreement write the name of the thing. Spelling differs (case, dashes, prefixes, unit suffixes),
so facts are joined by words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute
from nornweave.disagree.facts.values import UNIT_SUFFIXES, UNITS

MAX_NAME_LENGTH = 80
"""Of a name as it is written: longer ones are paths, sentences or generated."""
MAX_WORDS = 8

_CAMEL = lazy_pattern(r"[A-Z]{2,}s(?![a-z])|[A-Z]+\d*(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+")
_LEAD = lazy_pattern(r"^[-$@:#*&%.!?/]+|^(?:m_|k(?=[A-Z][a-z]))")
_SEPARATORS = lazy_pattern(r"::|->|[./\\]|\[['\"]?|['\"]?\]")
_DEFAULT_WORDS = frozenset({"default", "defaults", "initial", "fallback"})
_VERBS = frozenset({"use", "set", "get", "has", "is", "with", "no", "apply", "load"})  # ``useDefaults`` is a name
_LIMIT_WORDS = frozenset({"max", "maximum", "limit", "limits", "upper", "min", "minimum", "lower", "size"})
_SAME_WORD = {"maximum": "max", "minimum": "min", "defaults": "default", "config": "configuration", "dir": "directory"}
# Words that say what kind of value it is; alone they need an owner.
GENERIC = frozenset(
    """
    name type value id key path url uri host port timeout limit size count length width height version mode level
    format enabled disabled enable disable debug verbose options option config configuration settings setting params
    args default data data input output file files directory prefix suffix status code error message text title label
    description max min interval delay retries attempts threads workers user username password token method class
    state index offset start end step rate ratio weight color style strategy policy scope kind target source result
    response request body headers header query callback handler function logger log force silent strict encoding
    charset address server client parent children items item list map set flags flag number num n x y i k
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Name:
    """A written name, split into its parts.

    Attributes:
        name: the words of its last component in lower case, separated by blanks, without a unit; never empty.
        owner: the words of the components before it, ``app http`` for ``app.http.timeout``; may be empty.
        unit: the unit that its suffix (``ms``) gives to a plain number; ``None`` without such a suffix.
        attribute: the property that the name states, ``default`` for ``DEFAULT_PORT``; ``None`` if it states none.
    """

    name: str
    owner: str = ""
    unit: str | None = None
    attribute: Attribute | None = None


@lru_cache(maxsize=1 << 15)
def words_of(text: str) -> tuple[str, ...]:
    """Split an identifier or a heading into lower-case words: ``maxHTTPHeaders`` → ``max http headers``."""
    return tuple(_SAME_WORD.get(word, word) for word in (part.lower() for part in _CAMEL.findall(text)))


def singular(word: str) -> str:
    """Return an English noun without its plural ``s``. Short words and those in ``ss`` stay as they are."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


@lru_cache(maxsize=1 << 15)
def read_name(written: str) -> Name | None:
    """Split a written name into its parts; ``None`` if it has no letters or is too long for a name."""
    text = written.strip().strip("`'\"")
    if not text or len(text) > MAX_NAME_LENGTH:
        return None
    parts = [part for part in _SEPARATORS.split(text) if part]
    if not parts:
        return None
    words = list(words_of(_LEAD.sub("", parts[-1])))
    if len(parts) > 1 and len(words) == 1 and words[0] in UNIT_SUFFIXES:  # socket.timeout.ms
        words = [*words_of(parts[-2]), *words]
        del parts[-2]
    if not any(word.isalpha() or not word.isdigit() for word in words) or len(words) > MAX_WORDS:
        return None
    unit = None
    if len(words) > 2 and words[-2] == "per" and words[-1] in UNITS:  # counted, not measured: RATE_LIMIT_PER_MINUTE
        words = words[:-2]
    elif len(words) > 1 and words[-1] in UNIT_SUFFIXES and words[-2] not in _LIMIT_WORDS:
        if words[-2] == "in" and len(words) > 2:
            unit = UNIT_SUFFIXES[words[-1]]
            words = words[:-2]
        else:
            unit = UNIT_SUFFIXES[words.pop()]
    elif len(words) > 1 and words[-1] in UNIT_SUFFIXES:
        unit = UNIT_SUFFIXES[words[-1]]
    attribute: Attribute | None = None
    if len(words) > 1 and words[0] in _DEFAULT_WORDS:
        words, attribute = words[1:], "default"
    elif len(words) > 1 and words[-1] in _DEFAULT_WORDS and words[-2] not in _VERBS:
        words, attribute = words[:-1], "default"
    elif "default" in words[1:-1]:  # task_default_queue beside default_queue of tasks
        words.remove("default")
        attribute = "default"
    owner = [word for part in parts[:-1] for word in words_of(part) if word not in {"self", "this"}]
    return Name(" ".join(words), " ".join(owner[-MAX_WORDS:]), unit, attribute)


@lru_cache(maxsize=1 << 15)
def join_keys(name: str) -> tuple[str, ...]:
    """Return the keys of facts with this name: the name, and shorter forms that other writers use.

    Shorter forms leave out a leading word (``celery``, ``task``), because other writers give it as the owner, and
    words of limits (``max payload size``: ``payload``), as long as the rest is a distinctive name.
    """
    return tuple(dict.fromkeys(_forms(name)))


def _forms(name: str) -> Iterator[str]:
    yield name
    words = name.split()
    if len(words) > 1 and not _too_generic(words[1:]):
        yield " ".join(words[1:])
    if len(words) > 3:
        yield " ".join(words[2:])
    bare = [word for word in words if word not in _LIMIT_WORDS]
    if bare and len(bare) < len(words):
        for form in (bare, bare[1:]):
            if form and not _too_generic(form):
                yield " ".join(form)
    in_singular = list(map(singular, words))
    if in_singular != words:
        yield " ".join(in_singular)


def _too_generic(words: list[str]) -> bool:
    return len(words) == 1 and (words[0] in GENERIC or len(words[0]) < 4)


def is_other_of(written: str, name: str) -> bool:
    """Tell whether a written name, such as ``rollingTimeout``, is more special than a generic name such as *timeout*.

    The result is ``False`` if ``name`` is not generic.
    """
    other = read_name(written) if is_generic(name) else None
    return other is not None and other.name.endswith(f" {name}")


def is_generic(name: str) -> bool:
    """Tell whether a name only gives the kind of a value. Many things have such a name: ``timeout``, ``name``."""
    return name in GENERIC
