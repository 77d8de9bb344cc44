"""Who and what a sentence is about: clauses, subjects, entities, topics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from nornweave.claims.lexicon import words_in
from nornweave.claims.passage import Passage
from nornweave.claims.sentences import Sentence
from nornweave.claims.vocabulary import split_name, stem, topics_of

MAX_TOPICS = 12
MAX_ENTITY_WORDS = 4

_CUT = re.compile(
    r"[;:](?=\s)|\s[—–-]\s|[()]|,\s(?=(?:and|but|or|while|whereas|so|because|which|if|when|unless|then|after|where"
    r"|who|you|we|they|I|he|she|it|this)\b)"
)
_JOIN = re.compile(r",\s|\s(?:and|or|but|while|whereas)\s|/")
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|can|cannot|can't|may|must|will|shall|should|would|does|do|doesn't|don't"
    r"|did|expires?"
    r"|returns?|responds?|answers?|repl(?:y|ies)|waits?|lives|live for|lasts?|takes?|keeps?|allows?|accepts?"
    r"|supports?|uses?|runs?"
    r"|stays?|remains?|defaults? to|retries|tries|gives?|gets?|sends?|becomes?|contains?|holds?|stores?|times? out"
    r"|requires?|needs?|shipped|deployed|released|launched|went|goes|starts?|ends?|owns?|belongs?|fails?|throws?"
    r"|raises?"
    r"|closes?|opens?|rolled|started|ended|expired|caches?|refuses?|rejects?|comes?|adds?|provides?|handles?|reads"
    r"|writes|creates?|includes?|listens?|delivers?|offers?|grants?|emits?|triggers?|escalates?|expects?|permits?"
    r"|consumes?|weighs?|pays?|lets|loses|happens?|occurs?|renders|repeats?|checks for|comes with|polls)\b",
    re.IGNORECASE,
)
_PRONOUNS = words_in(
    """
    it this that these those they we i you he she there here both all everything anything which what who
    each one
    """
)
_POINTERS = frozenset({"this", "that", "these", "those", "such", "it", "they"})
_CONDITION = re.compile(
    r"(?:if|when|whenever|unless|once|while|after|before|by default)\b[^,]{0,160},\s", re.IGNORECASE
)
_OPENING = re.compile(
    r"(?:(?:and|but|so|then|also|now|yes|no|well|ok|okay|note that|please note(?: that)?|note|important|tip"
    r"|warning)[,:]?\s+)+",
    re.IGNORECASE,
)
_IN_BACKTICKS = re.compile(r"(`{1,2})[^`]{1,300}\1")
_DETERMINER = re.compile(r"\b(?:the|an?|our|your|its|each|every|any)\s", re.IGNORECASE)
_PREPOSITION = re.compile(
    r"\s(?:of|in|on|at|for|from|to|with|by|per|that|which|who|when|if|as|between|towards|under|during)\s", re.IGNORECASE
)
# What a conversation is called says where it took place, not what it is about.
_NAMELESS_FORMATS = frozenset({"slack", "transcript", "messages", "log"})


def clause_around(text: str, start: int, end: int, others: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the bounds of the clause that holds a value; other values of the sentence have clauses of their own."""
    low, high = 0, len(text)
    for cut in _CUT.finditer(text):
        if cut.end() <= start:
            low = max(low, cut.end())
        elif cut.start() >= end:
            high = cut.start()
            break
    for other_start, other_end in others:
        if low <= other_end <= start:
            joins = list(_JOIN.finditer(text, other_end, start))
            low = max(low, joins[-1].end() if joins else other_end)
        elif end <= other_start < high:
            join = _JOIN.search(text, end, other_start)
            high = min(high, join.start() if join else other_start)
    return low, high


def subject_of(text: str) -> str:
    """Return the words before the first verb, without openings; empty when there is no verb or only a pronoun."""
    opening = _OPENING.match(text)
    rest = text[opening.end() :] if opening else text
    condition = _CONDITION.match(rest)
    rest = rest[condition.end() :] if condition else rest
    verb = _VERB.search(rest, 0, 160)
    subject = rest[: verb.start()].strip(" ,*_\"'`") if verb else ""
    if subject.count(",") and not re.search(r",\s(?:and|or)\b", subject):
        subject = subject.rpartition(",")[2].strip()  # "In the sandbox, the limit is": the subject comes last
    return "" if is_pointer(subject) or len(subject.split()) > 12 else subject


def points_back(text: str) -> bool:
    """Tell whether a clause opens with a word for what another sentence names: ``It expires``."""
    opening = _OPENING.match(text)
    return (text[opening.end() :] if opening else text).partition(" ")[0].lower() in _POINTERS


def is_pointer(phrase: str) -> bool:
    """Tell whether a phrase means something that another sentence names: ``it``, ``this feature``."""
    words = phrase.lower().split()
    return not words or words[0] in _POINTERS or " ".join(words) in _PRONOUNS


def content_words(text: str, attribute: str = "") -> list[str]:
    """Return the words of a phrase that are topics, in order, distinct; without the attribute's own."""
    if not text:
        return []
    stems = frozenset(topics_of(text, without=(attribute,) if attribute else ()))
    return list(dict.fromkeys(word for word in split_name(text) if stem(word) in stems))


def entity_of(phrases: Sequence[str], attribute: str) -> str:
    """Return the entity that the first phrase with content names: its words before a preposition, if any."""
    for phrase in phrases:
        head = _PREPOSITION.split(phrase, maxsplit=1)[0]
        words = content_words(head, attribute) or content_words(phrase, attribute)
        if words:
            return " ".join(words[-MAX_ENTITY_WORDS:])
    return ""


def is_quoted(text: str, at: int) -> bool:
    """Tell whether a value stands inside a phrase in backticks, which is shown and not said (``waits 400 ms``)."""
    if "`" not in text:
        return False
    for phrase in _IN_BACKTICKS.finditer(text):
        if phrase.start() < at < phrase.end():
            before = text[phrase.start() : at].strip("`")
            return " " in before and "=" not in before and ":" not in before
    return False


def nearest_noun(before: str) -> str:
    """Return the words between the last determiner or verb and a value: what the value is said of."""
    phrase = _DETERMINER.split(before)[-1]
    verb = _VERB.search(phrase)
    return phrase[: verb.start()] if verb else phrase


def headings_of(passage: Passage, sentence: Sentence) -> tuple[str, ...]:
    """Return what a sentence stands under, the nearest first."""
    path = [part for part in (passage.section or "").split(" > ") if part][::-1]
    nearest = [sentence.heading] if sentence.heading else []
    titled = passage.title if passage.title and passage.format not in _NAMELESS_FORMATS else ""
    return tuple(dict.fromkeys(part for part in [*nearest, *path[:2], titled or ""] if part))


def stem_of_file(passage: Passage) -> str:
    """Return the file's name without its ending; of a conversation nothing."""
    return "" if passage.domain == "conversations" else _file_stem(passage.path)


@lru_cache(maxsize=1024)
def _file_stem(path: str) -> str:
    return PurePosixPath(path).stem if path else ""


def topics(texts: Iterable[str], attribute: str, extra: Sequence[str] = ()) -> tuple[str, ...]:
    """Collect the stems of texts, the first texts' first, at most ``MAX_TOPICS``; sorted."""
    found: dict[str, None] = dict.fromkeys(extra)
    for text in texts:
        if len(found) >= MAX_TOPICS:
            break
        found.update(dict.fromkeys(stem(word) for word in content_words(text, attribute)))
    return tuple(sorted(list(found)[:MAX_TOPICS]))
