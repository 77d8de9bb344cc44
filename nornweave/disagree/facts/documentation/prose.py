"""Templates of sentences: required versions, returned statuses, quantities in plain words.

``waits 30 seconds``, ``retried at most 3 times`` and ``batch size of 256`` need no announcing word.

Values are also followed by their flag: *Hooks time out after 15s. `-hook-timeout` changes this*. Names are identifiers
and noun phrases. Qualifiers are reasons why a sentence may not hold now and for everybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Qualifier
from nornweave.disagree.facts.documentation.tokens import Token, tokens_of
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import read_name, words_of
from nornweave.disagree.facts.values import Value
from nornweave.disagree.facts.versions import PRODUCTS, read_requirement

_I = re.IGNORECASE

Stretch = tuple[int, int]

_CHANGES = lazy_pattern(r"(?:default|chang|overrid|overrul|configur|adjust|customi[sz]|unless)", 2)
"""Says that there is a value which the flag replaces."""
BACK = 2
"""Sentences before that of a flag in which its value may stand."""
BEFORE, BEHIND = 4, 1
"""Tokens between a number and what it is a number of, at most: *timeout of hooks is 15s*, *5 retries*."""
STEM = 4
"""Letters that forms of one word have in common: *retries*, *retried*."""

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

_SENTENCE_END = lazy_pattern(
    r"[.!?](?=[\s*_)\"'”]*(?:\s+|$))(?=[*_)\"'”]*\s*(?:[A-Z`\"'(*\[<:]|$))|\n[ \t]*\n|\n(?=[ \t]*(?:[-*+•]|>)[ \t])"
)
MAX_SENTENCE = 1_200
"""Characters; a longer one is a table or generated, and is cut."""
_ABBREVIATION = lazy_pattern(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|incl|max|min|no|fig|eq|al)|\b[A-Z])$", re.IGNORECASE
)


class Stated(NamedTuple):
    """A statement of a sentence. If ``name`` is empty, it is about the name before it or the sentence's subject."""

    attribute: Attribute
    name: str
    value: Value
    start: int
    end: int
    owner: str = ""


_OF_VERSION = (
    r"(?P<version>(?:at least |[<>=~^≥]{1,2}\s?)?v?\d{1,4}(?:\.(?:\d{1,4}|x)){0,3}(?![\w%])\+?"
    r"(?:,? (?:or|and) (?:newer|later|above|higher|up|greater|more recent))?)"
)
_REQUIRES = lazy_pattern(
    r"\b(?:(?P<strict>requires?|required|needs?|must have|prerequisites?)|supports?|compatible with|runs on"
    r"|works (?:with|on)|accepts|allows)(?![\w-])[\s:`*_\[(]{1,6}"
    r"(?:(?:an?|the|only|minimum|recent|officially|installed|either)\s+){0,3}(?P<thing>\.?[a-z][\w.]{0,20}\b)?[\s`(\"']{0,3}"
    r"(?:(?:js|sdk|engine|runtime|framework|core|api|level|versions?)\s+){0,3}"
    + _OF_VERSION, _I,
)  # fmt: skip
_ALONE = lazy_pattern(
    r"[-+\s*_`\[(]{0,6}(?P<thing>\.?[a-z][\w.]{0,20}\b)[*_`:]{0,3}\s(?:versions? )?[*_`]{0,2}"
    + _OF_VERSION + r"[*_`\])]{0,3}(?=\s*(?:[,;(]|\.?\s*\Z|\n))", _I,
)  # fmt: skip
"""All that an item says: ``- Go 1.21 or newer``."""
_STATUS = lazy_pattern(
    r"\b(?:returns?|responds?|repl(?:y|ies)|answers?|served?|serves|sends?|fails?|rejects?|gets?|receives?|results? in"
    r"|status code)\b[^.;\n]{0,50}?(?<![\d.])([1-5]\d\d)\b"
    r"(?![.\d%:]|\s?(?:ms|seconds?|bytes|milliseconds|items|requests|MB|KB|characters))", _I,
)  # fmt: skip


def stated(text: str, start: int, end: int) -> Iterator[Stated]:
    """Yield the requirements and statuses that a sentence states.

    ``requires Python 3.8 or newer``, ``engines.node accepts >=16``, ``responds with a 404``, ``served as 301 Found``.
    """
    for match in filter(None, (*_REQUIRES.finditer(text, start, end), _ALONE.match(text, start, end))):
        requirement, thing = read_requirement(match["version"]), PRODUCTS.get((match["thing"] or "").lower(), "")
        is_told = thing or (not match["thing"] and not match["version"][0].isalnum())
        if requirement and is_told and (requirement.is_open or match.groupdict().get("strict")):
            yield Stated("requires", thing, Value("version", str(requirement)), match.start(), match.end())
    for match in _STATUS.finditer(text, start, end):
        yield Stated("status", "", Value("status", match[1]), match.start(), match.end())


_DIGIT = lazy_pattern(r"\d")
_UP_TO = r"(?: up to| at most| for| another| only| a maximum of| after| in| within| at| automatically){0,3}"
# Noun of the quantity → the verb that says it; all but retries are counted in time.
_VERBS = tuple(
    (noun, lazy_pattern(rf"\b(?:{verb})\s+(?=\d)", _I))
    for noun, verb in (
        ("timeout", rf"(?:wait(?:s|ed|ing)?|(?:time[sd]?[ -]?out|timing out)(?= a| i)){_UP_TO}"),
        ("retention", r"(?:kept|retained|keeps?|retains?|stored)\b[^.,;\n]{0,30}?\bfor(?: up to| at most)?"),
        (
            "retries",
            rf"(?:retr(?:y|ies|ied)|attempts?|tries|tried)(?= u| a){_UP_TO}(?=\s+\d+ (?:times|attempts|retries))",
        ),
    )
)
_LINKED = lazy_pattern(
    r"(?:\b(?P<link>of|is|stays? at|remains?(?: at)?|equals)|=)\s+(?:only\s+|set to\s+|just\s+|about\s+)?(?=v?\d|\.\d)",
    _I,
)
_GOES_ON = lazy_pattern(r"\.\d|[/:]\d|\s?(?:[-–—]|to)\s?\d|\.x\b|\^|-per-|\s[+*/]\s|\w")
_VERSION = lazy_pattern(r"v?\d{1,4}(?:\.\d{1,4}){1,3}\b|v\d{1,4}\b")
_SPEAKERS = frozenset(("we", "i", "it", "they", "you"))
_PASSIVE = lazy_pattern(r"\s+(?:is|are|was|were|be|been|will be|gets?)\s*$", _I)


def quantities(text: str, start: int, end: int, *, is_page: bool) -> Iterator[Stated]:
    """Yield the quantities of a sentence whose noun is known. If ``is_page``, vague ones (``of 64``) do not count.

    ``events are kept for 5 days``, ``batch size of 64``, ``the API version is v2.1``.
    """
    if _DIGIT.search(text, start, end) is None:
        return
    attribute: Attribute = "default" if "default" in text[start:end].lower() else "value"
    for noun, pattern in _VERBS:
        match = pattern.search(text, start, end)
        found = _number_at(text, match.end(), end) if match else None
        if match and found and found[0].unit == (None if noun == "retries" else "s"):
            yield Stated(attribute, noun, found[0], match.start(), found[1], _whose(text, start, match, noun))
    for match in _LINKED.finditer(text, start, end):
        link, noun = (match["link"] or "").lower(), noun_before(text, start, match.start())
        if (link == "of" and is_page) or not noun or words_of(noun)[-1:] == () or words_of(noun)[-1] not in QUANTITIES:
            continue
        found = (_version_at if noun.lower().endswith("version") else _number_at)(text, match.end(), end)
        is_vague = found and found[0].unit is None and link == "is" and len(noun.split()) == 1 and is_page
        if found is not None and not is_vague:
            yield Stated(attribute, noun, found[0], match.start(), found[1])


def _whose(text: str, start: int, verb: re.Match[str], noun: str) -> str:
    """Return the subject of a verb (*events* are kept for) or, if that is a speaker, its object (we keep *events* for).

    The result is empty for a timeout.
    """
    if noun == "timeout":
        return ""
    lead = _PASSIVE.sub("", text[start : verb.start()])
    whose = noun_before(text, start, start + len(lead))
    if whose and whose.lower() not in _SPEAKERS:
        return whose
    return noun_before(text, verb.start(), verb.start() + max(0, verb[0].rfind(" for")))


def _version_at(text: str, at: int, end: int) -> tuple[Value, int] | None:
    match = _VERSION.match(text, at, end)
    requirement = read_requirement(match[0]) if match else None
    return (Value("version", str(requirement)), match.end()) if match and requirement else None


def _number_at(text: str, at: int, end: int) -> tuple[Value, int] | None:
    """Return the number that begins at ``at``, and its end; ``None`` without one, or if it begins a date or a range."""
    token = next(tokens_of(text[at:end]), None)
    if token is None or token.value is None or token.value.kind != "number":
        return None
    return None if _GOES_ON.match(text, at + token.end, end) else (token.value, at + token.end)


def flagged(text: str, said: Sequence[Stretch]) -> Iterator[tuple[Token, Token, Stretch]]:
    """Yield each number with the flag that is named after it, and the number's sentence: *20 turns … ``--max-turns``*.

    Args:
        said: the sentences of a paragraph, in order.
    """
    rows = [list(tokens_of(text[start:end], start)) for start, end in said]
    for at, row in enumerate(rows):
        first = at if any(map(_is_number, row)) else max(0, at - BACK)
        for flag in row:
            name = read_name(flag.name) if flag.quoted and flag.text.startswith("-") and flag.is_identifier else None
            if name is None or not _CHANGES.search(text, said[first][0], said[at][1]):
                continue
            word = name.name.split()[-1]
            found = [(one, said[place]) for place in range(first, at + 1) for one in _numbers_by(rows[place], word)]
            if len(found) == 1 and found[0][0].end < flag.start:
                yield found[0][0], flag, found[0][1]


def _numbers_by(row: Sequence[Token], word: str) -> Iterator[Token]:
    for at, one in enumerate(row):
        around = (*row[max(0, at - BEFORE) : at], *row[at + 1 : at + 1 + BEHIND])
        if _is_number(one) and any(_is_form_of(other.text.lower(), word) for other in around):
            yield one


def _is_number(token: Token) -> bool:
    return token.value is not None and token.value.kind == "number"


def _is_form_of(said: str, word: str) -> bool:
    return said == word or (len(said) >= STEM and said[:STEM] == word[:STEM])


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


def sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the start and end of each sentence. ``e.g.``, ``1.5`` and code spans do not end a sentence."""
    cuts = [start]
    for match in _SENTENCE_END.finditer(text, start, end):
        if match[0] == "." and _ABBREVIATION.search(text[max(cuts[-1], match.start() - 8) : match.start()]):
            following = text[match.end() : match.end() + 2].strip()
            if not following[:1].isupper() or text[match.start() - 1 : match.start()].isupper():
                continue
        if not text.count("`", max(cuts[-1], match.start() - MAX_SENTENCE), match.start()) % 2:
            cuts.append(match.end())
    stretches = pairwise([*cuts, end])
    return [(at, min(at + MAX_SENTENCE, last)) for first, last in stretches for at in range(first, last, MAX_SENTENCE)]


_CONDITION = lazy_pattern(
    r"\b(?:if|when|unless|whenever|otherwise|depending|only (?:if|when|for|on|in|with)|in case|as long as|except"
    r"|on (?:windows|linux|macos|mac|unix|posix|mri|jruby|android|ios|arm\w*|x86\w*|\d\d-bit)|in (?:[\w-]+ ){1,2}modes?"
    r"|for [\w-]+ (?:users|clients|servers|connections|requests|workers|versions|clusters|environments|backends?))\b",
    _I,
)
# What makes a statement no fact about now and everybody: a question, a plan, what others say, what was, what is
# compared with something else, an example; where it is looked for, and whether only people in a thread say it so.
_NOT_MEANT: tuple[tuple[str, bool, re.Pattern[str]], ...] = (
    ("sentence", False, lazy_pattern(
        r"\?[\s)\"'*]*$|\b(?:propose[ds]?|planned|in (?:the|a) future)\b"
        r"|\bin (?:\w+ |v)?\d+\.\d\w*\b[^.;]{0,120}\bwill\b"
        r"|\b(?:docs?|documentation|docstrings?|readme|manual|page|comment|guide|tutorial|spec)\b(?: \w+){0,3}? "
        r"(?:says?|said|states?|stated|claims?|claimed|has|have|lists?|mentions?|shows?|reads?|gives?|suggests?)\b"
        r"|\baccording to\b|\bsays? that\b|^\s*>", _I)),
    ("sentence", True, lazy_pattern(
        r"\b(?:propos(?:e[ds]?|al)|suggest(?:s|ed|ion)?|let'?s|plan(?:s|ned)? to|should we|we (?:should|could)"
        r"|feature request|would (?:be|like|prefer|love|rather)|could be"
        r"|should (?:default to|really|probably|instead|get|go))\b", _I)),
    ("clause", False, lazy_pattern(
        r"\b(?:was|were|used to|previous(?:ly)?|formerly|originally|until (?:v|version )?\d|before (?:v|version )?\d"
        r"|prior to|in (?:earlier|older|previous|prior|past|former) (?:versions?|releases?)|had been|has been changed"
        r"|old(?:er)? (?:default|value|version|behaviou?r)s?)\b|^\W*before\s*,"
        r"|\b(?:twice|half (?:of )?the|\d+ times (?:the|as|more|larger|its)|\dx|same as|multiple of|relative to|per"
        r"|(?:more|less|greater|lower|higher|larger|smaller|longer|shorter|bigger) than (?:the|its|this|that)) ", _I)),
    ("clause", True, lazy_pattern(
        r"\b(?:i|we|i've|we've|i'm|we're|they|he|she)\b(?: \w+){0,2}? (?:set|use[ds]?|using|had|have|run|raised?"
        r"|changed?|configured?|increased?|decreased?|lower(?:ed)?|put|call(?:ed)?|go|went|switch(?:ed)?|bump(?:ed)?"
        r"|tried|try|reduced?)\b|\b(?:my|our|mine|ours)\b", _I)),
    ("value", False, lazy_pattern(
        r"\b(?:e\.g\.|for (?:example|instance)|such as|(?<!i )suppose|imagine|let's say|say,|examples?)(?=\W)"
        r"|\blike\b(?= (?:this|`|\d))", _I)),
)  # fmt: skip
_HEDGED = lazy_pattern(
    r"\b(?:maybe|perhaps|i (?:think|guess|suppose|believe|assume)|probabl[ye]|approximately|roughly|recommend\w*"
    r"|typically|usually|normally|generally|often|might|apparently|seems?|(?:about|around) (?=\d|`))\b", _I,
)  # fmt: skip
# A condition under which nobody set anything, or anybody would, is none.
_NOT_CONDITIONS = lazy_pattern(
    r"\b(?:if|when|unless)\s+(?:(?:it|this|that|the|is|are|option|value|setting|argument|parameter|flag|key|variable|one"
    r"|a|you|explicitly|`[^`\n]{1,60}`)\s+){0,4}?(?:not|un\w+|omitted|missing|absent|empty|otherwise|do not|don't|isn't"
    r"|set|given|specified|overridden|changed|provided|configured|no|needed|necessary|desired|wanted|required"
    r"|you (?:want|need|wish|like))\b(?:\s+(?:set|given|specified|provided|configured|passed|defined|supplied))?",
    _I,
)
_STOPS = lazy_pattern(r"[.;]\s|\sbut\s|,\s(?:and|so|it|i|we)\s", _I)
_CLAUSE_BREAK = lazy_pattern(r"[,;]\s|\s\(|\s[-–—]\s|\s(?:but|while|whereas|although|and i|and we|so)\s", _I)


def qualifiers_of(
    text: str, sentence: tuple[int, int], at: int, end: int, *, talk: bool
) -> tuple[Qualifier, ...] | None:
    """Return reasons why a value may not hold for everybody; ``None`` if it is not a fact about the present.

    Args:
        at: the start of the statement, which is its name or its value. ``end`` is the offset after its value.
        talk: whether the sentence is in a thread. Plans and the speaker's own settings are then checked too.
    """
    begin, stop = sentence
    first = max((match.end() for match in _CLAUSE_BREAK.finditer(text, begin, at)), default=begin)
    following = _CLAUSE_BREAK.search(text, end, stop)
    clause = text[first : following.start() if following else stop]
    parts = {"sentence": text[begin:stop], "clause": clause, "value": text[begin:end]}
    if any(pattern.search(parts[part]) for part, is_talk, pattern in _NOT_MEANT if talk or not is_talk):
        return None
    found: list[Qualifier] = ["hedged"] if _HEDGED.search(clause) else []
    plain = _NOT_CONDITIONS.sub(lambda match: " " * len(match[0]), parts["sentence"])
    opened = plain[: at - begin].lstrip(" *_>#+-\n")
    near = plain[max(0, at - begin - 40) : end - begin] + _STOPS.split(plain[end - begin :][:80])[0]
    if _CONDITION.match(opened) or _CONDITION.search(near):
        found.append("conditional")  # it opens the sentence, or stands by the value
    return tuple(found)
