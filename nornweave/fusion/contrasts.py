"""Words that keep things apart: live and test, read and connect, one plan and another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

CACHED = 1 << 14


@dataclass(frozen=True, slots=True)
class Contrast:
    """Words that divide things of one kind: a claim about one says nothing of the other.

    Attributes:
        sides: each the words of one alternative.
        usual: the alternative that is meant when a claim names none; ``None`` when none is.
        strict: whether a claim that names another than the usual one is kept apart from one that names none.
        named: whether only the name of a thing takes a side: these words stand in sentences about anything.
    """

    sides: tuple[frozenset[str], ...]
    usual: int | None = None
    strict: bool = True
    named: bool = False


def _contrast(*sides: str, usual: int | None = None, strict: bool = True, named: bool = False) -> Contrast:
    return Contrast(tuple(frozenset(side.split()) for side in sides), usual, strict and not named, named)


CONTRASTS = (
    _contrast("live production prod", "sandbox staging stage development dev test testing qa preview local", usual=0),
    _contrast("connect connection connecting", "read reading", "write writing", "idle keepalive", named=True),
    _contrast("min minimum least minimal lowest", "max maximum most maximal highest ceiling cap upto", strict=False),
    _contrast("default defaults", "max maximum ceiling cap", strict=False),
    _contrast("free", "pro professional", "enterprise", strict=False),
    _contrast("client clients caller callers", "server servers", named=True),
    _contrast("inbound incoming ingress", "outbound outgoing egress"),
    _contrast("upload uploads uploading", "download downloads downloading", named=True),
    _contrast("primary leader master", "replica replicas follower standby secondary", named=True),
    _contrast("soft", "hard", strict=False),
    _contrast("access", "refresh", strict=False),
    _contrast("internal", "external public", named=True),
    _contrast("android", "ios iphone ipad", "web browser", "desktop"),
    _contrast("linux", "windows", "macos"),
    _contrast("cpu", "gpu"),
    _contrast("hourly", "daily", "weekly", "monthly", "quarterly", "yearly annual annually", strict=False),
    _contrast("junior", "senior"),
    _contrast("domestic", "international abroad"),
    _contrast("weekday weekdays", "weekend weekends"),
    _contrast("first initial", "last final", named=True),
    _contrast("source", "destination target", named=True),
    _contrast("anonymous unauthenticated", "authenticated signed"),
    _contrast("get", "post", "put", "patch", "delete", named=True),
    _contrast("old legacy previous former", "new current", usual=1),
    _contrast("warning", "critical fatal", strict=False),
    _contrast("target goal objective", "actual measured observed", named=True),
    _contrast("rising high upper", "falling low lower", named=True),
    _contrast("import importer imports", "export exporter exports", named=True),
    _contrast("request requests", "response responses", named=True),
    _contrast("input", "output", named=True),
    _contrast("horizontal", "vertical", named=True),
    _contrast("producer producers", "consumer consumers", named=True),
    _contrast("sender", "receiver recipient", named=True),
    _contrast("successful success", "failed failure", named=True),
)  # fmt: skip
_CONTRAST_OF: dict[str, tuple[int, ...]] = {}
for _at, _one in enumerate(CONTRASTS):
    for _word in frozenset().union(*_one.sides):
        _CONTRAST_OF[_word] = (*_CONTRAST_OF.get(_word, ()), _at)

NARROWED = (1,)
"""Contrasts whose sides are parts: who names another thing and no part of it does not mean the part."""
USUAL = frozenset({"default", *(word for one in CONTRASTS if one.usual is not None for word in one.sides[one.usual])})
"""Words of what is meant when nothing is said: they add nothing to a name."""
_WORDS = re.compile(r"[a-z]+")
# "after the failover test": what was done, and no place where something else holds.
_TESTED = re.compile(r"\b(?:the|an?|every|each|of|after|before|during)\s(?:\w+\s)?tests?\b(?=\s*(?:$|[.,;:]))")
_HUMP = re.compile(r"([a-z])([A-Z])")


def take_other_sides(left: Mapping[int, frozenset[int]], right: Mapping[int, frozenset[int]]) -> bool:
    """Tell whether two things are told apart by a contrast in which they take different sides."""
    if not left and not right:
        return False
    for at in left.keys() | right.keys():
        contrast = CONTRASTS[at]
        mine, other = left.get(at, frozenset()), right.get(at, frozenset())
        if mine and other:
            if not mine & other:
                return True
        elif contrast.strict and (mine or other) != {contrast.usual}:
            return True
    return False


def filled(
    mine: Mapping[int, frozenset[int]], other: Mapping[int, frozenset[int]], around: str
) -> Mapping[int, frozenset[int]]:
    """Return the sides that a claim takes, with those of its surroundings where only the other claim takes one."""
    stands = sides_of(around)
    return {**{at: stands[at] for at in other.keys() & stands.keys()}, **mine}


@lru_cache(maxsize=CACHED)
def sides_of(text: str) -> Mapping[int, frozenset[int]]:
    """Return contrast → the sides that a text's words take, by their places in ``CONTRASTS``."""
    found: dict[int, frozenset[int]] = {}
    if "test" in text:
        text = _TESTED.sub(" ", text)
    for word in _CONTRAST_OF.keys() & _words(text):
        for at in _CONTRAST_OF[word]:
            sides = frozenset(side for side, named in enumerate(CONTRASTS[at].sides) if word in named)
            found[at] = found.get(at, frozenset()) | sides
    return found


def _words(text: str) -> set[str]:
    """Return the words of a text in lower case, identifiers split; digits part words."""
    parted = _HUMP.sub(r"\1 \2", text) if _HUMP.search(text) else text
    return set(_WORDS.findall(parted.lower()))
