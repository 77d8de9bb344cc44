"""Find names in a text: identifiers and noun phrases."""

from __future__ import annotations

from functools import lru_cache

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.expressions import read_value

_IDENTIFIER = lazy_pattern(r"[-$@:#]{0,2}[A-Za-z_][\w.:\-/]*(?:\[[\w'\"-]*\])?[?!]?$")
_CALL = lazy_pattern(r"\s*\([^()]*\)\s*;?$")
_NOT_NAMES = frozenset(
    """
    the a an it this that these those there which what who value values default defaults note example see true false
    none null nil undefined yes no on off if when unless and or not is are was were be been to of in at by for from with
    as use using used set option options setting settings parameter parameters returns return raises type types required
    optional int str string bool boolean float number object array list dict function void any integer e.g i.e etc vs
    macos ios github javascript typescript nodejs postgresql mysql graphql openapi ebay iphone all here infinity
    unlimited enabled disabled zero one two three
    """.split()  # noqa: SIM905
)


@lru_cache(maxsize=1 << 14)
def identifier_of(written: str) -> str:
    """Return the name in a code span, without call parentheses; empty for a literal or a command."""
    text = _CALL.sub("", written.strip().lstrip("~!")).strip().rstrip(":,;")
    if not 2 <= len(text) <= 80 or not _IDENTIFIER.match(text) or text.lower() in _NOT_NAMES:
        return ""
    if "//" in text or text.startswith("./"):
        return ""
    value = read_value(text)
    return "" if value is not None and value.is_literal else text


_STOP = frozenset(
    """
    the a an its their our your his this that these those is are was were be been being of to in on at by for
    from with and or but as than then if when unless which who what it they we you i has have had do does did
    will would can could should may might must not no only just also so such any each every all some both
    either neither per via into onto over under about around after before until since while during uses use
    using used set sets gets get got give given gives there here where how why now currently whose between up
    same other because new old current actual maximum minimum max min default defaults allow allows allowed
    specify specifies configure configures means takes wait waits uses called named s t re change changes
    changed raise raised increase increased moved move set keep keeps see find left stay stays more less least
    most my let lets read reads initial total overall small large higher lower very short long big own certain
    specific given
    """.split()  # noqa: SIM905
)
_WORD = lazy_pattern(r"[A-Za-z][\w-]*|[^\s\w]")


def noun_before(text: str, start: int, end: int) -> str:
    """Return the noun phrase that ends at ``end``: ``the default visibility timeout`` → ``visibility timeout``."""
    words = _WORD.findall(text[max(start, end - 70) : end])[end - 70 > start :]
    taken: list[str] = []
    for word in reversed(words):
        if not word[0].isalpha() or word.lower() in _STOP or len(taken) == 4:
            break
        taken.insert(0, word)
    last = taken[-1].lower() if taken else ""
    return "" if len(last) < 3 or last in _NOT_NAMES or last.endswith("ly") else " ".join(taken)


QUANTITIES = frozenset(
    """
    timeout timeouts interval limit size rate version port period delay ttl retries attempts length threshold
    probability duration lifetime expiry expiration retention capacity quota window frequency decay steps
    epochs heads layers dimension dimensions temperature seed concurrency threads workers connections depth
    width backoff factor ratio dropout momentum percentage weight neighbors replicas shards partitions
    iterations
    """.split()  # noqa: SIM905
)
"""Nouns that a number can be the value of; a phrase that ends with one names a thing that has a value."""
