"""Text → assertions: clauses with what they speak of, whether they deny it, and which side of an opposition they take.

For the contradictions that no claim holds: "drafts are saved automatically" and "drafts are never saved automatically".
Cheap on purpose, for this runs while somebody waits: words first, sentences only where the words give reason to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from nornweave.analysis import FUNCTION_WORDS
from nornweave.claims.vocabulary import stem
from nornweave.fusion.grounds import GENERIC

MAX_CHARACTERS = 1_500
"""Of an item that are looked at."""
MAX_CLAUSE_WORDS = 40
CACHED = 1 << 10

# Opposites: two lists of words, of which each word of one denies each word of the other. Words with a third possibility
# between them ("hot", "cold") or with many senses ("up", "down", "light") are no opposites here.
_OPPOSITES = (
    ("enabled enable enables activated", "disabled disable disables deactivated"),
    ("allowed permitted allows allow", "forbidden prohibited disallowed banned denied forbids"),
    ("synchronous synchronously", "asynchronous asynchronously"),
    ("required mandatory compulsory obligatory", "optional voluntary"),
    ("increases increase increased raises", "decreases decrease decreased reduces lowers"),
    ("ascending", "descending"),
    ("included include includes including", "excluded exclude excludes excluding"),
    ("public", "private"),
    ("visible shown", "hidden invisible"),
    ("mutable", "immutable"),
    ("sensitive", "insensitive"),
    ("clockwise", "counterclockwise anticlockwise"),
    ("encrypted", "unencrypted plaintext"),
    ("open", "closed"),
    ("before", "after"),
    ("blocking", "nonblocking"),
    ("stateful", "stateless"),
    ("ordered", "unordered"),
    ("unique", "duplicate"),
    ("automatically automatic", "manually manual"),
    ("inclusive", "exclusive"),
    ("lossless", "lossy"),
    ("reversible", "irreversible"),
    ("safe", "unsafe"),
    ("available", "unavailable"),
    ("persistent", "ephemeral volatile"),
    ("idempotent", "nonidempotent"),
    ("faster", "slower"),
    ("accepted accepts accept", "rejected refused rejects refuses"),
    ("succeeds succeed", "fails fail"),
    ("valid", "invalid"),
    ("inwards inward", "outwards outward"),
    ("eager eagerly", "lazy lazily"),
    ("strict strictly", "lenient leniently"),
    ("supported", "unsupported"),
)
SIDES: dict[str, tuple[int, int]] = {
    word: (at, side)
    for at, sides in enumerate(_OPPOSITES)
    for side, words in enumerate(sides)
    for word in words.split()
}
NEGATIONS = frozenset(
    """
    not never cannot no nor can't cant don't doesn't didn't isn't aren't wasn't weren't won't wouldn't shouldn't mustn't
    couldn't hasn't haven't dont doesnt isnt arent
    """.split()  # noqa: SIM905
)
_DENIAL = re.compile(
    r"\b(?:is|are|was|were|be|been|do|does|did|can|could|may|must|will|would|should|shall|has|have|had)"
    r"(?:n't|n’t| not\b| never\b| no longer\b)"
    r"|\bcan['’]t\b|\bwon['’]t\b|\bcannot\b|\bcan ?not\b|\bnever\b|\bno longer\b|\bnot (?:be )?\w+ed\b",
    re.IGNORECASE,
)
MARKS = NEGATIONS | SIDES.keys()
_CONDITION = re.compile(r"\b(?:if|unless|except|otherwise|only|instead of|rather than|without|during)\b", re.IGNORECASE)
_SUBORDINATE = re.compile(r"(?:If|Unless|When|Whenever|While|Until|Except|Without|During|Once)\b", re.IGNORECASE)
_OCCASION = re.compile(r"\b(?:when|whenever|until|while|where|once)\b", re.IGNORECASE)

# Words that modify a statement and change nothing of what it is about.
_FILLERS = frozenset(
    """
    please sorry note careful fyi heads reminder record just so that everybody know knows also now today still
    already yet again really actually currently always never not no longer cannot can't don't doesn't isn't
    aren't won't may might must shall will would should could can do does did is are be been being has have had
    was were by default all any every each both such very quite here there it its this these those they them we
    you i our your my their us me he she which who what when where while though although however therefore
    because since
    """.split()  # noqa: SIM905
)
# Code that stands outside backticks says nothing in English.
_CODE = re.compile(r"[={};<>\[\]|]|\w\(")
_UNSAID = _FILLERS | FUNCTION_WORDS | SIDES.keys()
_COMMA = re.compile(r",\s+(?!(?:and|or)\b)(?=\S+\s+\S+\s+\S)")
_TOKEN = re.compile(r"[^\W_]+(?:['’._-][^\W_]+)*")
_SENTENCE = re.compile(
    r"(?<=[.!?])[\"'`)*]*\s+|\n\s*\n|\n\s*(?=[-*•#|>]|\d+[.)]\s|\w[\w .-]{0,30}: )|(?<=:)\s+|;\s+|\s+[-–—]{1,2}\s+"
)
_LABEL = re.compile(r"^\s*(?:[-*•#>|]+|\d+[.)])\s*|^[\w .@-]{1,30}: ")
_TAIL = re.compile(
    r"\s+(?:because|since|so that|as long as|due to|thanks to|in order to|which|whatever|for up to|for at most|for now"
    r"|within \d)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_OPENING = re.compile(
    r"^(?:sorry|no|yes|well|fyi|btw|note|careful|heads-up|please note|for the record|in short)[,:]\s+(?:that )?",
    re.IGNORECASE,
)
_COMMENT = re.compile(
    r"\"\"\"(?P<doc>.{1,2000}?)\"\"\"|/\*(?P<block>.{1,2000}?)\*/|(?:#|//+|--)[!/]?\s(?P<line>[^\n]{3,300})", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Assertion:
    """A clause that says something.

    Attributes:
        stems: what it is about and what it says of it; without words of opposition, negation and function.
        denies: whether it is negated.
        sides: opposition → the side it takes, of those where it takes one.
        clause: itself, on one line.
        condition: whether it holds only under a condition.
        specific: the stems that say something.
        is_marked: whether it can contradict anything by itself.
    """

    stems: frozenset[str]
    denies: bool
    sides: tuple[tuple[int, int], ...]
    clause: str
    condition: bool
    specific: frozenset[str]
    is_marked: bool


@lru_cache(maxsize=CACHED)
def marks_of(content: str) -> frozenset[str]:
    """Return the words of negation and opposition that a text has: the reason to read it at all."""
    return MARKS.intersection(content[:MAX_CHARACTERS].lower().replace(",", " ").replace(".", " ").split())


@lru_cache(maxsize=CACHED)
def assertions_of(content: str, is_code: bool) -> tuple[Assertion, ...]:
    """Cut a text into assertions, in order; of code its comments and docstrings."""
    text = content[:MAX_CHARACTERS]
    parts = _comments(text) if is_code else (text,)
    sentences = (sentence for part in parts for sentence in _SENTENCE.split(part))
    return tuple(found for sentence in sentences for clause in _clauses(sentence) if (found := _assertion(clause)))


def _clauses(sentence: str) -> Iterator[str]:
    """Yield what stands between commas; a question says nothing, and what opens with a condition holds under it."""
    text = _OPENING.sub("", _LABEL.sub("", " ".join(sentence.split())))
    if text.endswith("?"):
        return
    opening = _SUBORDINATE.match(text)
    for clause in _COMMA.split(text):
        yield clause if opening is None or clause.startswith(opening[0]) else f"{opening[0].lower()} {clause}"


def _comments(code: str) -> Iterator[str]:
    """Yield docstrings and comments; lines of comment that follow each other are one text."""
    run: list[str] = []
    end = -1
    for match in _COMMENT.finditer(code):
        line = match["line"]
        if line is None or code[end : match.start()].strip() or end < 0:
            if run:
                yield " ".join(run)
            run = []
        if line is None:
            yield re.sub(r"\n\s*\*?", "\n", match["doc"] or match["block"])
        else:
            run.append(line)
        end = match.end()
    if run:
        yield " ".join(run)


def _assertion(clause: str) -> Assertion | None:
    said = _TAIL.sub("", clause)
    words = [word.lower().replace("’", "'") for word in _TOKEN.findall(said)]
    if not 2 < len(words) <= MAX_CLAUSE_WORDS or _CODE.search(clause):
        return None
    sides = tuple(sorted({SIDES[word] for word in words if word in SIDES}))
    if len({at for at, _ in sides}) < len(sides):  # "before and after": takes no side
        sides = ()
    stems = frozenset(stem(word.removeprefix("non-")) for word in words if word not in _UNSAID)
    denies = (_DENIAL.search(said) is not None) != any(word.startswith("non-") for word in words)
    condition = _CONDITION.search(clause) is not None or (denies and _OCCASION.search(clause) is not None)
    return Assertion(stems, denies, sides, clause, condition, stems - GENERIC, denies or bool(sides))


def says_something(stems: frozenset[str]) -> bool:
    """Tell whether stems name a thing that can be told from others."""
    return len(stems) >= 3 or (len(stems) == 2 and bool(stems - GENERIC))
