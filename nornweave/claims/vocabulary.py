"""The words that claims share, whatever they are read from: names in words, attributes, topics, units in names.

An *attribute* is a family of synonyms that hold in any software project: ``ttl``, ``expires`` and ``kept for`` are one
property, whoever writes about it. What tells the read timeout from the connect timeout is not the family but the
*topics*: the stems of all other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from nornweave.analysis import FUNCTION_WORDS, sequence
from nornweave.claims.families import (
    AFTER_UNITS,
    AMOUNTS,
    BOUNDED,
    BYTE_UNITS,
    COMPOUNDS,
    EMPTY_PATH_WORDS,
    EMPTY_WORDS,
    MORE_OF_FAMILY,
    MORE_UNIT_WORDS,
    PREPOSITIONS,
    STRONG,
    TIME_UNITS,
    UNIT_ANYWHERE,
    UNIT_OF,
    WEAK,
)

VERSION = "claims-2"

MAX_NAME = 400
"""Characters of a name or phrase that are looked at; what is longer is no name."""
MAX_FOLDERS = 5
MAX_TEXT = 8000
"""Characters of a text whose topics are taken."""
CACHED = 1 << 14

_PARTS = re.compile(r"[A-Z]{2,}s(?![A-Za-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_RUN = re.compile(r"[A-Za-z0-9]+")
_LINE = re.compile(r"\S[^\n]{0,199}")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_UNICODE_PARTS = re.compile(r"[^\W\d_]+|\d+")

# ``Windows`` is a system, not a plural; its stem would be taken for the family's.
# ``mininterval``, ``maxretries``: the bound is glued to what it bounds.
_GLUED = re.compile(
    r"(max|min)(interval|length|size|value|retries|retry|tries|attempts|time|timeout|delay|age|width|height|depth|count"
    r"|workers|threads|conn|conns|connections|limit|tokens|items|entries|rows|pool|batch|rate|bytes|memory|iter)"
)
_LEAST = frozenset({"min", "minimum", "minimal"})
_MOST = frozenset({"max", "maximum", "maximal"})
_NO_STEM = frozenset({"windows"})


@lru_cache(maxsize=CACHED)
def split_name(name: str) -> tuple[str, ...]:
    """Split an identifier, a path or a phrase into lower-case words.

    ``webhookTimeoutMs`` → ``webhook timeout ms``, ``HTTPServer2`` → ``http server 2``, ``a/b-c.py`` → ``a b c py``,
    ``IPaymentGateway`` → ``payment gateway``; what is written in one and in two parts comes in one (``time out``).
    """
    name = name[:MAX_NAME]
    if name.isascii():
        found = [part for run in _RUN.findall(name) for part in _split_run(run)]
    else:
        found = [part.lower() for part in _UNICODE_PARTS.findall(_HUMP.sub(" ", name))]
    return tuple(_join(found))


def _split_run(run: str) -> list[str]:
    """Split letters and digits that stand together."""
    parts = [part.lower() for part in _PARTS.findall(run)]
    if len(parts) == 1 and parts[0][0] == "m" and (glued := _GLUED.fullmatch(parts[0])):
        return [glued[1], glued[2]]
    if len(parts) > 1 and len(parts[0]) == 1 and run[0].isupper() and run[1].isupper():
        # IDisposable and TResult have a letter of the language's conventions, OAuth and XPath one of their own.
        return parts[1:] if run[0] in "IT" else [parts[0] + parts[1], *parts[2:]]
    return parts


def _join(parts: Sequence[str]) -> Iterator[str]:
    at = 0
    while at < len(parts):
        if at + 1 < len(parts) and (parts[at], parts[at + 1]) in COMPOUNDS:
            yield parts[at] + parts[at + 1]
            at += 2
        else:
            yield parts[at]
            at += 1


@lru_cache(maxsize=CACHED)
def stem(word: str) -> str:
    """Return the stem of one lower-case word, the search index's."""
    terms = sequence(word)
    return terms[0] if len(terms) == 1 else word


def _phrases(families: dict[str, str]) -> dict[tuple[str, ...], str]:
    found: dict[tuple[str, ...], str] = {}
    for family, phrases in families.items():
        for phrase in phrases.split("|"):
            exact, words = phrase.startswith("="), split_name(phrase)
            found[tuple(f"={word}" if exact else stem(word) for word in words)] = family
    return found


_STRONG_PHRASES = _phrases(STRONG)
_WEAK_PHRASES = _phrases(WEAK)
_LONGEST = max(map(len, (*_STRONG_PHRASES, *_WEAK_PHRASES)))
_STRONG_FIRST = frozenset(phrase[0] for phrase in _STRONG_PHRASES)
_WEAK_FIRST = frozenset(phrase[0] for phrase in _WEAK_PHRASES)


def attribute_of(words: Sequence[str]) -> str | None:
    """Name the attribute family that a name or a phrase speaks of; ``None`` when it names none.

    In a name the head stands last (``retry_timeout`` is a timeout), in a phrase before its first preposition
    (``timeout of a retry``). Families that say what they measure go before ``limit``, ``count``, ``default``.

    Args:
        words: lower case, as ``split_name`` gives them.
    """
    return _attribute(tuple(words))


@lru_cache(maxsize=CACHED)
def _attribute(words: tuple[str, ...]) -> str | None:
    cut = next((at for at, word in enumerate(words) if at and word in PREPOSITIONS), len(words))
    for phrases, starts in ((_STRONG_PHRASES, _STRONG_FIRST), (_WEAK_PHRASES, _WEAK_FIRST)):
        for before in (cut, len(words)) if cut < len(words) else (cut,):
            found = _last_phrase(words, before, phrases, starts)
            if found is not None:
                return _bounded(_measured_in_bytes(found, words), words)
    return None


def _bounded(family: str, words: Sequence[str]) -> str:
    """Tell least from most: ``min_length`` and ``max_length`` never contradict each other."""
    if _LEAST.intersection(words) and family != "minimum":
        return "minimum" if family in AMOUNTS else f"min_{family}"
    if _MOST.intersection(words) and family in BOUNDED:
        return f"max_{family}"
    return "limit" if family == "count" and _MOST.intersection(words) else family


def _measured_in_bytes(family: str, words: Sequence[str]) -> str:
    """Make a limit on bytes a limit on size, as prose says it."""
    if family in {"limit", "size"} and any(UNIT_OF.get(word) in BYTE_UNITS for word in words):
        return "size_limit"
    return family


def _last_phrase(
    words: Sequence[str], before: int, phrases: dict[tuple[str, ...], str], starts: frozenset[str]
) -> str | None:
    """Return the family of the phrase that ends last, of those that end there the longest; all start ``before``."""
    best = (0, 0, "")
    for spelt in (
        tuple(word if word in _NO_STEM else stem(word) for word in words),
        tuple(f"={word}" for word in words),
    ):
        for at in (at for at, word in enumerate(spelt[:before]) if word in starts):
            for end in range(min(at + _LONGEST, len(spelt)), at, -1):
                family = phrases.get(spelt[at:end])
                if family is not None:
                    best = max(best, (end, end - at, family))
                    break
    return best[2] or None


def _stems_of_family(family: str) -> frozenset[str]:
    phrases = (phrase.removeprefix("=") for table in (STRONG, WEAK) for phrase in table.get(family, "").split("|"))
    words = [*(phrase for phrase in phrases if " " not in phrase), *MORE_OF_FAMILY.get(family, "").split()]
    return frozenset(stem(word) for word in words if word)


_FAMILY_STEMS = {family: _stems_of_family(family) for family in {**STRONG, **WEAK}}
FAMILIES = frozenset(_FAMILY_STEMS)
"""The names of all families; an attribute that is none of them is called by its own words."""
# Tokens and characters are counted, and they are things as well: an access token has a lifetime.
_UNIT_STEMS = frozenset(stem(word) for word in (*UNIT_OF, *MORE_UNIT_WORDS)) - {stem("token"), stem("character")}
_EMPTY_STEMS = frozenset(stem(word) for word in EMPTY_WORDS | FUNCTION_WORDS) | _UNIT_STEMS


def family_stems(attribute: str) -> frozenset[str]:
    """Return the stems of the words that name a family; of anything else its own words' stems."""
    known = _FAMILY_STEMS.get(attribute.removeprefix("min_").removeprefix("max_"))
    return frozenset(stem(word) for word in split_name(attribute)) if known is None else known


def topics_of(*texts: str, without: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the stems of what texts are about, sorted, distinct.

    Function words, unit words, numbers, single letters and the boilerplate of code and paths are no topics.

    Args:
        without: words that are none either; of the name of an attribute family all its words.
    """
    left_out = frozenset().union(*(family_stems(word) for word in without))
    return tuple(sorted({topic for text in texts for topic in _content_stems(text)} - left_out))


@lru_cache(maxsize=1 << 12)
def _content_stems(text: str) -> frozenset[str]:
    words = split_name(text) if len(text) <= MAX_NAME else [word for part in _pieces(text) for word in split_name(part)]
    stems = (stem(word) for word in words if len(word) > 1 and not word.isdigit())
    return frozenset(found for found in stems if found not in _EMPTY_STEMS)


def ordered_topics(text: str, without: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the topics of a text, as ``topics_of`` does, in the order in which it names them."""
    kept = frozenset(topics_of(text, without=without))
    words = (word for piece in _pieces(text) for word in split_name(piece))
    return tuple(dict.fromkeys(found for found in map(stem, words) if found in kept))


def _pieces(text: str) -> list[str]:
    return _LINE.findall(text[:MAX_TEXT])


def path_topics(path: str) -> tuple[str, ...]:
    """Return the topics of a file's name and of the folder that it lies in, where they say anything."""
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    if not parts:
        return ()
    stem_of_file = parts[-1].rsplit(".", 1)[0] or parts[-1]
    words = [*split_name(stem_of_file), *split_name(telling_folder("/".join(parts[:-1])))]
    return topics_of(" ".join(word for word in words if word not in EMPTY_PATH_WORDS))


@lru_cache(maxsize=1 << 12)
def telling_folder(folder: str) -> str:
    """Return the nearest folder of a path whose name says something: ``sync`` of ``packages/sync/src``."""
    for name in reversed(folder.split("/")[-MAX_FOLDERS:]):
        if topics_of(" ".join(word for word in split_name(name) if word not in EMPTY_PATH_WORDS)):
            return name
    return ""


def unit_in_name(words: Sequence[str]) -> str | None:
    """Return the unit that a name carries, as ``values.canonical_number`` reads it; ``None`` without one.

    ``webhook timeout seconds`` → ``seconds``, ``max header bytes`` → ``bytes``, ``rate limit per minute`` →
    ``requests per minute``.
    """
    if "per" in words:
        return _rate_unit(words, words.index("per"))
    end = len(words)
    while end and words[end - 1] in AFTER_UNITS:
        end -= 1
    if end > 1 and words[end - 1] in UNIT_OF:
        return UNIT_OF[words[end - 1]]
    return next((UNIT_OF[word] for word in reversed(words) if word in UNIT_ANYWHERE), None)


def _rate_unit(words: Sequence[str], at: int) -> str | None:
    period = UNIT_OF.get(words[at + 1]) if at + 1 < len(words) else None
    if period not in TIME_UNITS:
        return None
    counted = words[at - 1] if at else ""
    if not counted.endswith("s") or counted in UNIT_OF:
        counted = "requests"
    return f"{counted} per {period.removesuffix('s')}"
