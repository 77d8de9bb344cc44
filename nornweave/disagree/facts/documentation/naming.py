"""Find names in a text: code spans, identifiers, noun phrases, headings and types."""

from __future__ import annotations

import re
from functools import lru_cache

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.expressions import read_value

CODE = lazy_pattern(r"(?<!`)(`{1,2})(?!`)([^`\n]{1,200})\1(?!`)")
_IDENTIFIER = lazy_pattern(r"[-$@:#]{0,2}[A-Za-z_][\w.:\-/]*(?:\[[\w'\"-]*\])?[?!]?$")
_LIKE_IDENTIFIER = lazy_pattern(r"^-{1,2}\w|^[$@:]|\w[_.:-]\w|[a-z][A-Z]|^[a-z]")
_CALL = lazy_pattern(r"\s*\([^()]*\)\s*;?$")
_FILE = lazy_pattern(
    r"\.(?:md|py|js|mjs|cjs|ts|tsx|jsx|json|ya?ml|toml|ini|cfg|conf|rst|txt|html?|css|go|rb|rs|java|kt|php|sh|xml|lock|"
    r"com|org|net|io|dev|app|log|sql|csv|gz|zip|exe|dll|so|png|jpg|svg|pdf|tf|mdx|adoc|env|gradle|e|g)$",
    re.IGNORECASE,
)
_NOT_NAMES = frozenset(
    """
    the a an it this that these those there which what who value values default defaults note example see true false
    none null nil undefined yes no on off if when unless and or not is are was were be been to of in at by for from with
    as use using used set option options setting settings parameter parameters returns return raises type types required
    optional int str string bool boolean float number object array list dict function void any integer e.g i.e etc vs
    macos ios github javascript typescript nodejs postgresql mysql graphql openapi ebay iphone one all here
    """.split()  # noqa: SIM905
)
_OBJECTS = frozenset("r res resp response req request reply ctx self this app console".split())  # noqa: SIM905
_LITERAL_WORDS = frozenset("infinity unlimited enabled disabled zero one two three".split())  # noqa: SIM905


@lru_cache(maxsize=1 << 14)
def identifier_of(written: str) -> str:
    """Return the name that a code span holds, without call parentheses; empty if it is a literal or a command."""
    bare = written.strip().lstrip("~!")
    text = _CALL.sub("", bare).strip().rstrip(":,;")
    if not 2 <= len(text) <= 80 or not _IDENTIFIER.match(text) or text.lower() in _NOT_NAMES:
        return ""
    if text == bare and _FILE.search(text) and text.split(".")[0].lower() not in _OBJECTS:
        return ""
    if text.lower() in _LITERAL_WORDS or "//" in text or text.startswith("./"):
        return ""
    value = read_value(text)
    return "" if value is not None and value.is_literal else text


def is_like_identifier(text: str) -> bool:
    """Tell whether a bare word is spelt as only an identifier is: ``max_size``, ``maxSize``, ``--size``, ``size``."""
    return bool(_LIKE_IDENTIFIER.search(text)) and bool(identifier_of(text))


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


_EMPTY_HEADINGS = frozenset(
    """
    configuration config readme option options setting settings parameters properties arguments usage reference api
    overview introduction general advanced basic notes example examples guide installation getting started and the of
    for with a in other common additional default defaults directives environment variables http https json todo sql
    html css rest cli tls ssl yaml xml url tcp udp dns features changes migration how to documentation command line
    """.split()  # noqa: SIM905
)
_SCREAMED = lazy_pattern(r"[A-Z][A-Z0-9]{2,}$")
_FLAG = lazy_pattern(r"(?<![\w-])--?[A-Za-z][\w-]*(?![\w.])")
_NUMBERING = lazy_pattern(r"^\s*(?:\d+(?:\.\d+)*\.?|[ivx]+\.)\s+")


MAX_BESIDE = 2
"""Words of a heading beside the name in it: *The `rows` option*."""


@lru_cache(maxsize=1 << 12)
def heading_name(heading: str) -> tuple[str, bool]:
    """Return the name that a heading gives to what stands below it.

    Returns:
        The name as it is written, and whether it is an identifier; ordinary words are a weak name; empty if none.
    """
    text = _NUMBERING.sub("", heading).strip("#*: \t")
    span = CODE.search(text)
    if span is not None:
        flags = _FLAG.findall(span[2])  # ``-r, --rows <count>``
        name = identifier_of(max(flags, key=len) if flags else re.split(r"[= (]", span[2])[0])
        is_alone = len(re.findall(r"[A-Za-z]{2,}", CODE.sub("", text))) <= MAX_BESIDE
        return (name, True) if name and is_alone else ("", False)
    bare = re.split(r"\s*[(=<\[{,]", text, maxsplit=1)[0].strip("*_ ")
    if " " not in bare and (
        is_like_identifier(bare) or (_SCREAMED.match(bare) and bare.lower() not in _EMPTY_HEADINGS)
    ):
        return bare, True
    words = re.findall(r"[A-Za-z][\w'-]*", text)
    if not 1 <= len(words) <= 5 or len(text) > 60 or all(word.lower() in _EMPTY_HEADINGS for word in words):
        return "", False
    return " ".join(words), False


def heading_path(section: str | None, title: str | None) -> list[str]:
    """Return the headings above a passage, outermost first; at most six."""
    parts = [part for part in (section or "").split(" > ") if part]
    for part in (title or "").split(" > "):
        if part and (not parts or parts[-1] != part):
            parts.append(part)
    return parts[-6:]
