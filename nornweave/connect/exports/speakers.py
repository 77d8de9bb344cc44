"""Split a line into speaker and text: ``alice: text``, ``[00:01:02] Alice Smith: text``, ``<alice> text``."""

from __future__ import annotations

import re

_NAMED = re.compile(r"\s*(?:>>\s*|-\s+)?(?P<name>[^\s:<>][^:<>\n]{0,47}?)\s?:(?:\s+|$)(?P<said>.*)", re.DOTALL)
_IN_ANGLES = re.compile(r"\s*<(?P<name>[^<>\s][^<>\n]{0,47})>\s+(?P<said>.*)", re.DOTALL)
_MAX_NAME_WORDS = 4
# Small words inside names; any other word of a name of several words starts with a capital, a digit or a bracket.
_PARTICLES = frozenset(
    ("al", "and", "bin", "da", "de", "del", "della", "der", "di", "dos", "du", "el", "la", "le", "van", "von", "zu")
)
# What stands before a colon in notes and logs and is nobody's name.
_NOT_NAMES = """
action agenda answer caution critical date debug decision e.g error example fatal fyi http https i.e info note notes ps
question re reminder subject summary time tip todo topic trace update url warn warning
"""
_NOBODY = frozenset(_NOT_NAMES.split())
# The last line of a traceback, and of a build: ``json.decoder.JSONDecodeError: …``.
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Failure)")


def split_speaker(line: str) -> tuple[str, str] | None:
    """Split a line into speaker and what they say; ``None`` when it does not start with a name.

    A name has one to four words; of several each starts as names do, so that "The plan is: ship" names nobody.
    """
    match = _IN_ANGLES.match(line) or _NAMED.match(line)
    if match is None:
        return None
    name = " ".join(match["name"].split())
    return (name, match["said"].strip()) if _is_name(name) else None


def _is_name(name: str) -> bool:
    words = name.split()
    if not words or len(words) > _MAX_NAME_WORDS or name.lower() in _NOBODY or not any(map(str.isalpha, name)):
        return False
    if _RAISED.fullmatch(name):
        return False
    if len(words) == 1:
        return True
    return all(not word[0].islower() or word in _PARTICLES for word in words) or _is_numbered(words)


def _is_numbered(words: list[str]) -> bool:
    """``speaker 1``."""
    return len(words) == 2 and words[1].isdigit()
