"""Sentences of the passages that answer the question, word for word: an answer without a language model.

These are the best sentences of the best passages. What a sentence is worth depends on the words of the question in it,
weighed by how rare they are among the sentences, on its passage, and on whether it says what the question asks for: a
value, a reason, a place. In code the sentences of comments and docstrings are read. Lines of code are read only if the
question has a name as code writes names, if they state the value of a setting in the question, if they define what it
asks for, or if they are the condition of a line that it names or repeats. In prose that states a default, the quotation
runs from the name to the value, and what leads to a list or to code is quoted with that. Of things that are compared
each has a sentence.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, islice, takewhile
from typing import NamedTuple

from nornweave.ask.answer.snippet import Unit, terms_of_units, units_of
from nornweave.ask.fuse.records import ExtractedSentence, FusedItem
from nornweave.ask.search.exact import (
    ASKS_FOR_NEWEST,
    ASKS_FOR_RELEASE,
    ASKS_FOR_VALUE,
    ASKS_PLACE,
    ASKS_QUANTITY,
    ASKS_VALUE,
    MEANS_DEFAULT,
    OF_ITS_DAY,
    asks_for_newest,
    kinds_asked,
    own_names,
    settings_in,
    stated_version,
    version_asked_of,
)
from nornweave.ask.search.history import (
    asks_for_past,
    hash_of,
    is_of_others,
    may_ask_for_past,
    overruled,
    range_asked,
    release_noted,
    releases_in,
)
from nornweave.ask.search.pasted import Place, messages_in, nearest_paths, places_in, said_words
from nornweave.ask.search.query import FLAG, SENTENCE_WORDS, read_query
from nornweave.core.text.analyzer import FUNCTION_TERMS, query_terms, sequence
from nornweave.core.text.index_fields import (
    SAYS_NOTHING,
    asked_versions,
    is_aside,
    is_data,
    is_identifier,
    is_version,
    tag_version,
    variant_of,
)
from nornweave.core.text.inline_markup import front_matter, one_line, unescaped
from nornweave.core.text.negation import NEGATIONS, affirms, is_question, negated_terms
from nornweave.core.types import COMMIT, COMMITTED, RELEASE, ChunkId, Domain, Fact, Span
from nornweave.disagree.facts.names import read_name, words_of
from nornweave.disagree.facts.statement import called, definition_at, described, is_declared, lines_at, statement_at
from nornweave.read.blocks.man import is_called_manual

QUOTES = " `'\"*"
# One of each passage: a word of the question in a passage further down tells less than what ranked the passages.
MOST_SENTENCES = 3
# Code that says nothing in words is passed over, up to here: each passage costs a quarter of a millisecond.
READ_PASSAGES = 8
# A passage far below the best is not quoted: of 1,110 questions none lost its right sentence by that.
LEAST_SHARE = 0.4
# What is joined is no longer than this, so that three of them are read at a glance. A sentence is divided above
# more, as half of one may say the opposite; and a value may stand so far from its name, without which it says nothing.
LONGEST, LONGEST_SENTENCE = 400, 600
# Where a name stands alone, its type may stand between it and its value.
NEAR_NAME = 2
# A passage beside the point gives way to others of this share of its score.
# So many words of tests make a passage one of tests.
BESIDE_SHARE, TESTING = 0.6, 4
# How much of the question's words a further sentence of a passage holds, unless it is of the kind that is asked for.
FURTHER_SHARE = 0.2
# What a word of the question before counts, in a follow-up question.
EARLIER_SHARE = 0.25
# Words from which on the length of a sentence tells nothing more.
LONG = 10
SMALL = 1e-3
# A line repeats the question if it has this many words, and this share of them stands in the question.
LEAST_ECHO, ECHO_SHARE = 5, 0.7
# What is compared has a name; more words ask something about it.
WORDS_COMPARED = 4
# More words say something themselves.
WORDS_OF_LEAD = 12
# Blanks around and between the words of a line that says too little to be told by it.
MARKS = 2
# What code says in words, to the end where it is cut, and the marks before it.
_COMMENT = re.compile(
    r'"""(.*?)(?:"""|\Z)|/\*(.*?)(?:\*/|\Z)|((?:^[^\S\n]*(?:#|//|--)[^\n]*(?:\n|\Z))+)', re.DOTALL | re.MULTILINE
)
STARRED = 2  # the group of what stands between /* and */
# What begins a line of it is no entry of a list, unless a tag follows.
_STAR = re.compile(r"^[^\S\n]*\*(?=[^\S\n]+[^@\s]|[^\S\n]*$)", re.MULTILINE)
_HASH = re.compile(r"^[^\S\n]*#+(?:[^\S\n]+#)*(?=\s)", re.MULTILINE)
# In Markdown within a comment: below other marks, or a line of its own above an empty one.
_HEADED = re.compile(r"[^\S\n]*(?:(?:///?!?|\*|#)[^\S\n]+)?#{1,6}[^\S\n]+\S")
# ``[1]: https://example.org``, of which there may be several.
_LINKED = r"(?:\[[^\]\n]+\]:[^\S\n]+\S+\s*)+"
_BOUND = re.compile(r"[^\S\n]*(?:[\w.]+[^\S\n]+)*?([A-Za-z_]\w{3,})[^\S\n]*(?::[^=\n]*)?:?=(?!=)")
_COMMENT_LINE = re.compile(r"[^\S\n]*(?:#|//|--)")
_COMMENT_MARK = re.compile(r"\s*(?:[#*!/-]+\s+)*")
# Between back quotes a character reference is what the text is about.
_CODE_SPAN = re.compile(r"((?<!`)`[^`\n]+`(?!`)|(?<!`)``(?!`)[^\n]+?``(?!`))")
_GAP = re.compile(r"\n(?:[^\S\n]*\n)+(?=\S)")
_LINE_MARK = re.compile(r"\n[^\S\n]*(?:/{2,3}!?|#+|\*|--)(?=\s)")
_ENTRY_MARK = re.compile(r"(?:[-*+>]|#{1,6}|\d{1,3}[.)])\s+(?=\S)")
# Headings, underlines, fences, tags and questions say what a passage is about, and answer nothing.
_NO_ANSWER = re.compile(
    r"\s*(?:[#=]{1,6}\s[^\n]*|\[+[\w%,#.=\"' -]*\]+|[|]?[=~^*+#_.-]{3,}"
    rf"|{_LINKED}"
    r"|(?:```|~~~)[^\n]*|(?:\.\.\s+)?_[^\n]*:|\.\.(?:\s(?:code|code-block|sourcecode)::[^\n]*(?:\n[^\S\n]*:[\w-]+:[^\n]*)*)?|\[[^\]\n]*\]\([^)\n]*\)|(?:<[^<>\n]*>\s*)+)\s*|.*\?[\"')*_:\s]*",
    re.DOTALL,
)
# A line that is nothing but names, marked or not, perhaps with a type behind them: what is said of them stands below.
_LABEL = re.compile(
    r"\s*(?:[-*+]\s+)?(?P<names>[-*_`'\"+]*+\w[\w.$/-]*[*_`'\"]*+"
    r"(?:(?:,|[ ]\|)?[ ][-*_`'\"]*+\w[\w.$/-]*[*_`'\"]*+){0,2})(?:[ ]\([^()\n]*\))?:?[*_]*\s*"
)
_FENCE = re.compile(r"^[^\S\n]*(?:```|~~~)", re.MULTILINE)
_WORDS = re.compile(r"\w+")
# What such a sentence is about stands elsewhere.
_REFERS = re.compile(r"\W*(?:this|it|its|these|they|that) ", re.IGNORECASE)
_TESTS = re.compile(r"(?<![^\W_])(?:tests?|testing|fixtures?|mocks?)(?![^\W_])", re.IGNORECASE)
# ``test_time`` in code is a name like others.
_OF_TESTS = re.compile(rf"{_TESTS.pattern}(?!_)", re.IGNORECASE)
_OPTIONS = re.compile(
    r"\b(?:(?:considered|rejected|other|discarded) (?:options|alternatives)|alternatives\b"
    r"|(?:options|alternatives) considered|pros and cons|rejected)\b",
    re.IGNORECASE,
)
_ASKS_FOR_OPTIONS = re.compile(
    r"\b(?:options?|alternatives?|or|vs|versus|compar\w+|differ\w*|consider\w*|reject\w*|discard\w*|pros|cons)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"v?\d+")
_COUNTED = "one|two|three|four|five|six|seven|eight|nine|ten"
_DIGITS = re.compile(rf"(?<!\w)\d|\b(?:{_COUNTED})\b", re.IGNORECASE)
_LINE = re.compile(r"\S[^\n]*")
_QUANTITY = re.compile(
    rf"(?<![^\W\d])\d|\b(?:{_COUNTED}|once|twice|never|always|unlimited|infinite"
    r"|no (?:\w+ )?limit|all)\b",
    re.IGNORECASE,
)
_DEFAULT = re.compile(r"\bdefaults?\b|\botherwise\b|\bunless\b", re.IGNORECASE)
_WHY = re.compile(r"\bwhy\b|\breasons?\b|\bhow come\b", re.IGNORECASE)
_REASON = re.compile(
    r"\b(?:because|since|so that|in order to|to (?:avoid|prevent|ensure|make sure|allow|keep)|otherwise|therefore|thus"
    r"|due to|reason|rationale|would|easier|means that|which means)\b",
    re.IGNORECASE,
)
_WHY_NOT = re.compile(
    r"\b(?:why|what is wrong|what speaks)\b.*\b(?:not|n't|avoid\w*|against|discourag\w+|bad|dangerous|deprecated|slow"
    r"|unsafe|insecure|problem\w*|disadvantages?|drawbacks?)\b",
    re.IGNORECASE,
)
# Why something is better left: also what is worse about it.
_DRAWBACK = re.compile(
    rf"{_REASON.pattern}|\b(?:more|less|fewer|larger|slow(?:er|ly)?|worse|harder|expensive|costly|costs?"
    r"|unreliable|unsafe|insecure|dangerous|incompatible|breaks?|fails?"
    r"|(?:not|n't|cannot) (?:\w+ )?(?:compatible|work|support\w*|possible|scale))\b",
    re.IGNORECASE,
)
# Things that are compared.
_COMPARED = re.compile(
    r"\b(?:differ\w*|distinction|choose|decide|compare)\b(?: \w+)*? ?\b(?:between|of)? (?P<things>.+)"
    r"|(?P<versus>.+ (?:vs\.?|versus) .+)",
    re.IGNORECASE,
)
_BETWEEN_THINGS = re.compile(r",\s*(?:and |or )?| (?:and|or|vs\.?|versus|from|to|with) ", re.IGNORECASE)
# What asks a commit for its reason, and what gives one.
_ASKS_WHY = re.compile(
    rf"{_WHY.pattern}|\b(?:rationale|motivation|thinking)\b|\bwhat (?:made|led|drove|prompted|moved|convinced)\b",
    re.IGNORECASE,
)
_GROUND = re.compile(
    r"\b(?:because|so that|in order to|to (?:avoid|prevent|ensure|make sure)|otherwise|due to|reason|rationale"
    r"|motivat\w+|as (?:it|this|they|that|we)|since (?:it|this|they|that|we)|no longer|instead of)\b",
    re.IGNORECASE,
)
# Less than some words, entries of lists, headings and what git itself writes give no reason.
_NO_REASON = re.compile(
    r"\s*(?:\S+\s+){0,2}\S*\s*\Z|\s*(?:[-*+#>|]|```|\d+[.)]\s|This reverts commit|\(cherry picked|[\w-]+:\s)"
)
_ASKS_DEFINITION = re.compile(
    r"\b(?:which|what) (?:function|method|class)\b|\bin the (?:source )?code\b", re.IGNORECASE
)
_OF_DEFINITIONS = frozenset(sequence("class function method code"))
_ASKS_MEANING = re.compile(
    r"\bwhat (?:does|do|did)\b.*\b(?:do|mean|control|change|affect)\b|\bwhat (?:is|are)\b.*\bfor\b|\bexplain\b",
    re.IGNORECASE,
)
_AT_LEAST = re.compile(
    r"(?:>=|≥|\bor (?:later|newer|above|higher|greater|more recent)\b|\bat least\b|\bminimum\b|\d\+)", re.IGNORECASE
)
# A method that every class has, by its line alone, which says nothing without the class.
_BARE = re.compile(
    r"\s*(?:async\s+)?(?:def\s+__\w+__|(?:public\s+)?function\s+__\w+|constructor|def\s+initialize)\s*(?:\([^\n]*)?\s*"
)
# Words of sentences: a text with some of them is said to people.
_OF_SENTENCES = re.compile(
    r"\b(?:an?|the|this|that|which|is|are|be|will|if|when|to|of|in|on|by|with|for|from|not|and|or|only)\b",
    re.IGNORECASE,
)
SAID = 3
_VALUES = frozenset({"default", "value", "setting"})
_UNSET = frozenset({"unset", "undefined", "unspecified", "missing", "not set", "not specified", "not given"})
_ASKS_FOR_DEFAULT = frozenset({"default", "defaults"})
# In reStructuredText a heading stands above a line of signs.
_UNDERLINE = re.compile(r"([=~^*+#\"'-])\1{2,}\s*$", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?][\"')*_`]*(?=\s|\Z)")
# Below a line of text such signs underline a heading.
_FENCED = re.compile(r"^(```+|(?:(?<=\n\n)|(?<!\n))~~~)[^\n]*\n(?P<code>.*?)(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
# In reStructuredText, below a directive or a line that ends with two colons.
_INDENTED = re.compile(
    r"(?:^\.\. (?:code|code-block|sourcecode)::[^\n]*|::)\n(?:[^\S\n]*\n)+"
    r"(?P<code>(?:[^\S\n]+\S[^\n]*(?:\n|\Z)|[^\S\n]*\n)+)",
    re.MULTILINE,
)
_MARKUP = re.compile(r"^(?:```|~~~|\.\. )[^\n]*", re.MULTILINE)
# What stands above a line that is reached only then.
_CONDITION = re.compile(
    r"[^\S\n]*(?:[}\])]\s*)?(?:else\s+|[}])?(?:if|elif|elsif|unless|when|case|except|catch|rescue|while|guard)\b[^\n]*"
)
_ELSE = re.compile(r"[^\S\n]*(?:[}\])]\s*)?else\b")


class _Worth(NamedTuple):
    """The weights of a sentence's properties. Each property adds to the log odds that the sentence answers.

    Fitted to questions about three repositories and tried on three others (docs/figures-archive.md, *Sentences that
    answer*).

    Attributes:
        words: for a sentence with all words of the question; a part of the words, weighed by rarity, adds its share.
        passage: multiplies the natural logarithm of the passage's score divided by the best score.
        first: for a sentence of the first passage that has any candidates.
        kind: for a sentence that says what the question asks for: a value, a reason, a place.
        again: subtracted for each sentence of the same passage that was chosen earlier.
        length: for a sentence of ``LONG`` words; a shorter one adds its share.
    """

    words: float = 2.1
    passage: float = 1.45
    first: float = 1.9
    kind: float = 2.0
    again: float = 1.5
    length: float = 0.5


WORTH = _Worth()


@dataclass(frozen=True, slots=True)
class _Asked:
    """The properties of a question that decide which sentences answer it.

    Attributes:
        wanted: the terms to look for in sentences.
        settings: possible names of a setting, as facts spell them, each with its terms.
        named: the words of the setting's name, if the question holds one identifier or flag and little else.
        for_code: whether a line of code may answer.
        for_default: whether it asks for a default.
        for_value: whether it asks for the value of a setting.
        for_quantity: whether it asks how much, how many or how long.
        reason: what a reason is told by; ``None`` if it does not ask why.
        for_place: whether it asks where something is in the code.
        for_definition: whether it asks which class or function does something, or where that is in the code.
        for_meaning: whether it asks what something does or is for.
        versioned: the terms of what it asks the needed version of; empty for other questions.
        manifest: what it asks the version of that a manifest may state; empty for other questions.
        lines: the lines of files that the question names.
        said: all words of the question, in lower case.
        words: the same in their order.
        bound: names to which code binds the message that the question is.
        kinds: the kinds of values that may answer; empty if no value is asked for.
        compared: the things that it compares, at most three.
        is_message: whether it is a text such as an error and asks nothing.
        pasted: the words of a question of several lines, because a text that only repeats them is no answer; empty for
            a question of one line.
        own: the terms of a follow-up question without those before it; empty for other questions.
    """

    wanted: frozenset[str]
    settings: Mapping[str, frozenset[str]]
    named: frozenset[str]
    for_code: bool
    for_default: bool
    for_value: bool
    for_quantity: bool
    reason: re.Pattern[str] | None
    for_place: bool
    for_definition: bool
    for_meaning: bool
    versioned: frozenset[str]
    manifest: str
    lines: tuple[Place, ...]
    said: frozenset[str]
    words: str
    bound: frozenset[str]
    kinds: frozenset[str]
    compared: tuple[str, ...]
    is_message: bool
    pasted: str
    own: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    item: FusedItem
    unit: Unit
    terms: frozenset[str]
    words: int
    says_value: bool
    is_declared: bool
    is_of_use: bool
    is_told: bool = False


def extract(items: Sequence[FusedItem], question: str) -> tuple[ExtractedSentence, ...]:
    """Choose up to three sentences that answer, best first.

    Three kinds of passages are not quoted: a passage that lost a conflict; a passage that affirms what the question
    negates, if another passage does not affirm it; and a page of another version than the first passage, unless the
    question compares versions.

    Returns:
        The sentences; empty if none holds a word of the question. For a question about a whole release, such as "what
        changed in 2.1", these are the first three sentences of its section. For a question about the past, they are the
        subject of a commit with its author and date.
    """
    earlier, follow_up = _thread(question)
    asked = _read_follow_up(follow_up, earlier) if earlier else _read_asked(question)
    formats = frozenset(item.chunk_id for item in items if asked.is_message and _formats(item, asked))
    readable = [item for at, item in enumerate(items) if at < READ_PASSAGES or item.chunk_id in formats]
    holding = _fitting(_undemoted(readable), question)
    if holding and (begins := _extract_release(holding, question) or _extract_commit(holding[0], question)):
        return begins
    facts = [fact for item in holding for fact in item.facts if not _is_unset(fact)]
    declared = frozenset((fact.name, fact.value) for fact in facts if is_declared(fact))
    valued = frozenset(fact.name for fact in facts)
    paths = frozenset(item.citation.source_path for item in holding)
    lines = tuple(Place(path, line) for named, line in asked.lines for path in nearest_paths(named, paths))
    manifest = asked.manifest if any(_stated_version(item, asked.manifest) for item in holding) else ""
    asked = replace(asked, lines=lines, bound=_bound_names(holding, asked), manifest=manifest)
    read = partial(_candidates, asked=asked, valued=valued, declared=declared)
    least = LEAST_SHARE * max((item.score for item in holding), default=0.0)
    beside = _beside(holding, question)
    raising = formats.union(item.chunk_id for item in holding if _uses(item.content, asked.bound))
    reading = sorted(
        (item for item in holding if item.score >= least or item.chunk_id in raising),
        key=lambda item: (
            asked.for_definition and item.domain != Domain.CODE,
            item.chunk_id in beside,
            item.chunk_id not in raising,
        ),
    )
    saying: Iterable[list[_Candidate]] = filter(None, map(list, map(read, reading)))
    if asked.for_default:  # a place that only reads a setting does not say its default
        saying = sorted(saying, key=lambda passage: not any(each.is_declared for each in passage))
    passages = [*islice(saying, READ_PASSAGES if asked.compared else MOST_SENTENCES)]
    passages = [each for each in passages if each[0].item.chunk_id not in beside] or passages
    if len(entries := _entries([*chain(*passages)], asked.compared)) > 1:
        return tuple(_sentence(each.item, each.unit) for each in entries)
    candidates = [*chain(*passages[:MOST_SENTENCES])]
    candidates = _unsaid(candidates, items, earlier, asked.own)
    if manifest:
        candidates = [
            each for each in candidates if each.is_told or (each.says_value and asked.versioned <= each.terms)
        ]
    spread = Counter(term for candidate in candidates for term in candidate.terms)
    shares = {term: EARLIER_SHARE for term in asked.wanted - asked.own if asked.own}
    weights = {term: shares.get(term, 1.0) * math.log(1 + len(candidates) / count) for term, count in spread.items()}
    if not candidates or not (weights or asked.lines or any(candidate.is_told for candidate in candidates)):
        return ()
    whole, top = math.fsum(weights.values()) or 1.0, max(item.score for item in holding) or 1.0
    first = passages[0][0].item

    @cache
    def share(candidate: _Candidate) -> float:
        """Return how much of the question's words a sentence holds, in [0, 1]."""
        return math.fsum(weights.get(term, 0.0) for term in candidate.terms) / whole

    @cache
    def worth(candidate: _Candidate) -> float:
        """Return the log odds that a sentence answers."""
        return math.fsum(
            (
                WORTH.words * share(candidate),
                WORTH.passage * math.log(max(candidate.item.score, SMALL) / top),
                WORTH.first * (candidate.item is first and not asked.for_definition),
                WORTH.kind * candidate.says_value,
                WORTH.length * min(candidate.words, LONG) / LONG,
            )
        )

    is_last = any(candidate.is_declared for candidate in candidates)
    is_known = is_last or any(candidate.is_told for candidate in candidates)  # each place says the value once

    def order(candidate: _Candidate) -> tuple[bool, bool, bool, float]:
        """Return a sort key; the sentence to quote first has the greatest.

        Sentences that only use a setting come last. Sentences that declare the asked setting come first, then those
        that describe it, then the others, each by score.
        """
        declares = is_last and asked.for_default and candidate.is_declared
        told = candidate.is_told
        said = sum(each.item is candidate.item for each in chosen)
        value = candidate.item.score if told else worth(candidate) - WORTH.again * said
        return not (candidate.is_of_use and is_last), declares, told, value

    def is_further(candidate: _Candidate) -> bool:
        """Tell whether a sentence says something beside those of its passage that are chosen."""
        beside = [each for each in chosen if each.item is candidate.item]
        is_new = not any(is_known or _overlap(candidate.unit, each.unit) for each in beside)
        is_worth = bool(candidate.terms or asked.lines) and (candidate.says_value or share(candidate) >= FURTHER_SHARE)
        return is_new and (is_worth or not beside)

    chosen: list[_Candidate] = []
    said: dict[tuple[str, ...], ExtractedSentence] = {}
    while len(said) < MOST_SENTENCES and (candidates := [*filter(is_further, candidates)]):
        best = max(candidates, key=order)  # of equals the first, in the order of their passages
        candidates.remove(best)
        sentence = _sentence(best.item, best.unit)
        if said.setdefault(tuple(_WORDS.findall(sentence.text)), sentence) is sentence:  # two versions say the same
            chosen.append(best)
    return tuple(said.values())


def _unsaid(
    candidates: list[_Candidate], items: Sequence[FusedItem], earlier: str, own: frozenset[str]
) -> list[_Candidate]:
    """Return the sentences without those that answered an earlier question and hold nothing of the follow-up's own."""
    told = frozenset(each.text for each in extract(items, earlier)) if earlier else frozenset[str]()
    return [
        each for each in candidates if each.terms & own or not told or _sentence(each.item, each.unit).text not in told
    ] or candidates


def _entries(candidates: Sequence[_Candidate], things: Sequence[str]) -> list[_Candidate]:
    """Return, for each thing that a question compares, the first sentence that begins with it, or stands below it."""
    said = list[list[_Candidate]]()
    for thing in things:
        name = r"[\s_-]?".join(map(re.escape, thing.split()))
        begins = re.compile(rf"[^\w/\[]*{name}\W+\w+\W+\w", re.IGNORECASE)
        of_thing = [each for each in candidates if begins.match(each.item.item.content[slice(*each.unit)])]
        of_thing = [each for each in of_thing if each.item.domain != Domain.CODE or _says(each)]
        below = (each for each in candidates if _is_below(each, frozenset(sequence(thing))) and _says(each, SAID))
        said.append(of_thing or [*below])
    together = Counter(item for of_thing in said for item in {each.item.chunk_id for each in of_thing})
    best = (
        max(of_thing, key=lambda each: (together[each.item.chunk_id], each.says_value, len(each.terms)))
        for of_thing in said
        if of_thing
    )
    return list(dict.fromkeys(best))


def _is_below(candidate: _Candidate, words: frozenset[str]) -> bool:
    """Tell whether a text stands under a heading, or is of a class, that is called by some words."""
    place = candidate.item.citation
    named = frozenset(sequence((place.section or place.title or "").rpartition(" > ")[2]))
    return bool(named) and named <= words


def _says(candidate: _Candidate, words: int = 1) -> bool:
    return len(_OF_SENTENCES.findall(candidate.item.item.content, *candidate.unit)) >= words


def _undemoted(items: Sequence[FusedItem]) -> list[FusedItem]:
    """Return the passages that lost no conflict. What holds against the first passage comes in its place."""
    held = [item for item in items if not item.demoted]
    if not items or not items[0].demoted:
        return held
    instead = [item for item in held if item.conflict == items[0].conflict]
    return [replace(item, score=items[0].score) for item in instead] + [item for item in held if item not in instead]


def _fitting(items: list[FusedItem], question: str) -> list[FusedItem]:
    """Return the passages of one version, or of the asked releases, that do not say the opposite of what is asked.

    Nor is there one that a newer passage overrules.
    """
    gone = overruled(question, [item.item for item in items])
    items = [item for item in items if not gone.get(item.chunk_id)]
    if len(asked_versions(question)) < 2:
        paths = [item.citation.source_path if item.domain != Domain.CODE else "" for item in items]
        versions = [variant_of(path).version for path in paths]
        first = next(filter(None, versions), ())
        items = [item for item, version in zip(items, versions, strict=True) if version in {(), first}]
    if asks_for_past(question) and (asked := releases_in(question)):
        told = [release_noted(item.item) for item in items]
        items = [item for item, of in zip(items, told, strict=True) if not of or asked[0] <= of <= asked[1]] or items
    if ranged := range_asked(question):
        items = [item for item in items if not is_of_others(item.item, ranged)] or items
    if not (negated := negated_terms(question)):
        return items
    return [item for item in items if item.domain == Domain.CODE or not affirms(item.item.content, negated)] or items


def _beside(items: Sequence[FusedItem], question: str) -> frozenset[ChunkId]:
    """Return the passages that may mislead, because they are of a kind that the question does not ask for.

    What holds in tests need not hold elsewhere, an option in a decision record may be a rejected one, and a file of
    data says nothing about the project. A passage that scores far above all others is not returned.
    """
    has_name = any(is_identifier(word.written) for word in read_query(question).words)
    manifest = _manifest_asked(question)

    def is_beside(item: FusedItem) -> bool:
        place, text = item.citation, item.item.content
        is_of_tests = is_aside(place.source_path) or len(_OF_TESTS.findall(f"{place.section}\n{text}")) >= TESTING
        return not _stated_version(item, manifest) and (
            (is_of_tests and not _TESTS.search(question))
            or (bool(_OPTIONS.search(place.section or "")) and not _ASKS_FOR_OPTIONS.search(question))
            or (item.domain == Domain.CODE and is_data(place.source_path) and item.item.told is None and not has_name)
        )

    found = [item for item in items if is_beside(item)]
    others = max((item.score for item in items if item not in found), default=0.0)
    return frozenset(item.chunk_id for item in found if others >= BESIDE_SHARE * item.score)


def _extract_release(items: Sequence[FusedItem], question: str) -> tuple[ExtractedSentence, ...]:
    """Return the first sentences of a release's section. Its heading comes first if the newest release is asked for.

    The result is empty if the passage is not a release's section, or if the question asks for a detail in it.
    """
    words = [word.whole for word in read_query(question).words if not word.is_function_word]
    asks = {word for word in words if not _NUMBER.fullmatch(word)}
    # Its own name says nothing of a release: *the newest release of Kiln*.
    own = frozenset[str]().union(*map(_own_names, items))
    ranged = range_asked(question) is not None
    if not asks or not (ranged or asks - own <= ASKS_FOR_RELEASE | ASKS_FOR_NEWEST | OF_ITS_DAY):
        return ()
    item, versions = items[0], asked_versions(question)
    release = release_noted(item.item) or _tag(item)
    # A changelog that is no longer kept ends before the newest release.
    if release and not ASKS_FOR_NEWEST.isdisjoint(asks) and (newer := max(items, key=_tag)) and _tag(newer) > release:
        item, release = newer, _tag(newer)
    if not release or (versions and not ranged and not any(is_version(release, version) for version in versions)):
        return ()
    text = item.item.content
    units = [unit for unit in _sentences(text) if _WORDS.search(text, *unit)]
    below = [
        unit
        for unit in units
        if not _is_heading_or_question(text, unit) and not SAYS_NOTHING.fullmatch(text[slice(*unit)])
    ]
    entries = [unit for unit in below if _ENTRY_MARK.match(text[slice(*unit)].lstrip())]
    columns = [_column(text, unit) for unit in entries]
    said = [unit for unit, column in zip(entries, columns, strict=True) if column == min(columns)] or below
    is_newest = not ASKS_FOR_NEWEST.isdisjoint(asks)
    leading = takewhile(lambda unit: unit == units[0] or _is_heading_or_question(text, unit), units)
    head = [unit for unit in leading if is_newest and _NUMBER.search(text, *unit) and unit not in said][:1]
    return tuple(_sentence(item, unit) for unit in [*head, *said][:MOST_SENTENCES])


def _column(text: str, unit: Unit) -> int:
    """Return the column, from 1, of a unit's first character that is no blank."""
    first = unit[0] + len(text[slice(*unit)]) - len(text[slice(*unit)].lstrip())
    return first - text.rfind("\n", 0, first)


def _tag(item: FusedItem) -> tuple[int, ...]:
    """Return the version of a release of the history; empty for other passages."""
    metadata = item.item.metadata
    return tag_version(str(metadata.get("release"))) if metadata.get("kind") == RELEASE else ()


def _own_names(item: FusedItem) -> frozenset[str]:
    place = item.citation
    return own_names(place.source_id, place.url, place.source_path, place.section or place.title)


def _extract_commit(item: FusedItem, question: str) -> tuple[ExtractedSentence, ...]:
    """Return a commit's subject, the sentence of its body that is nearest to the question, and its author and date.

    If the question asks why, a sentence with a reason is the nearest. A body that adds nothing to the subject is left
    out. For a release, the first lines are returned. The result is empty for other passages, and if the question cannot
    ask for the past.
    """
    kind, text = item.item.metadata.get("kind"), item.item.content
    if kind not in {COMMIT, RELEASE} or not may_ask_for_past(question, (hash_of(item.citation),)):
        return ()
    lines = [found.span() for found in _LINE.finditer(text)]
    made = COMMITTED.search(text)
    if kind == RELEASE or not made:
        return tuple(_sentence(item, unit) for unit in lines[: MOST_SENTENCES if kind == RELEASE else 1])
    said = [lines[0], *_units_in(text, lines[0][1], made.start())]
    held = terms_of_units(text, said, frozenset(query_terms(question)) - FUNCTION_TERMS)
    more = [len(terms - held[0]) for terms in held]  # than the subject
    asks_why = _ASKS_WHY.search(question) is not None
    reasons = [asks_why and place > 0 and _GROUND.search(text, *unit) is not None for place, unit in enumerate(said)]
    best = max(range(len(said)), key=lambda place: (reasons[place], more[place]))
    if not reasons[best] and more[best] <= 1:  # what a body begins with is why
        best = next((at for at, unit in enumerate(said) if asks_why and at and not _NO_REASON.match(text, *unit)), 0)
    chosen = [lines[0], *([said[best]] if best else []), made.span()]
    return tuple(_sentence(item, unit) for unit in chosen)


def as_read(sentence: str, *, is_code: bool) -> str:
    """Return a sentence on one line: code without the comment mark of each line, prose with ``&`` for ``&amp;``."""
    if is_code:
        return one_line(_LINE_MARK.sub(" ", sentence))
    parts = _CODE_SPAN.split(sentence)
    return one_line("".join(part if at % 2 else unescaped(part) for at, part in enumerate(parts)))


def _read_asked(question: str) -> _Asked:
    query, flag, words = read_query(question), FLAG.search(question), said_words(question)
    others = read_query(MEANS_DEFAULT.sub("", question)).words
    only = [word for word in others if not word.is_function_word and word.whole not in ASKS_FOR_VALUE]
    is_written = len(only) == 1 and (flag or "-" in only[0].written or is_identifier(only[0].written))
    name = read_name(only[0].written) if is_written else None
    for_definition = _ASKS_DEFINITION.search(question) is not None
    wanted = frozenset(query_terms(MEANS_DEFAULT.sub(r"\g<0> default", question))) - FUNCTION_TERMS - NEGATIONS
    return _Asked(
        wanted=wanted - _OF_DEFINITIONS if for_definition else wanted,
        settings={
            name: frozenset(query_terms(" ".join(word.written for word in words)))
            for name, words in settings_in(query.words).items()
        },
        named=frozenset(name.name.split() if name else ()),
        for_code=len(query.words) < SENTENCE_WORDS or bool(flag) or any(is_identifier(w.written) for w in query.words),
        for_default=not _ASKS_FOR_DEFAULT.isdisjoint(word.whole for word in query.words)
        or MEANS_DEFAULT.search(question) is not None,
        for_value=ASKS_VALUE.search(question) is not None,
        for_quantity=ASKS_QUANTITY.search(question) is not None,
        reason=_DRAWBACK if _WHY_NOT.search(question) else _REASON if _WHY.search(question) else None,
        for_place=ASKS_PLACE.search(question) is not None,
        for_definition=for_definition,
        for_meaning=_ASKS_MEANING.search(question) is not None,
        versioned=frozenset(query_terms(version_asked_of(question))) - FUNCTION_TERMS,
        manifest=_manifest_asked(question),
        lines=places_in(question),
        said=frozenset(words.split()),
        words=words,
        bound=frozenset(),
        kinds=kinds_asked(question) if ASKS_VALUE.search(question) else frozenset(),
        compared=_compared(question),
        is_message=not is_question(question),
        pasted=words if "\n" in question.strip() else "",
        own=frozenset(),
    )


def _thread(question: str) -> tuple[str, str]:
    """Return the questions before a follow-up question, and itself; the first is empty if it stands alone."""
    *before, last = question.strip().split("\n")
    is_thread = bool(before) and is_question(last)
    is_thread &= all(is_question(line) or len(line.split()) < SENTENCE_WORDS for line in before)
    return ("\n".join(before), last) if is_thread else ("", question)


def _read_follow_up(question: str, earlier: str) -> _Asked:
    """Return what a follow-up question asks; the questions before it say of what, and ask nothing more."""
    asked, before = _read_asked(question), _read_asked(earlier)
    settings = {**before.settings, **asked.settings} if asked.for_value or asked.for_default else asked.settings
    own = asked.wanted
    return replace(asked, wanted=own | before.wanted, own=own, settings=settings, pasted="")


def _compared(question: str) -> tuple[str, ...]:
    found = _COMPARED.search(question)
    things = _BETWEEN_THINGS.split((found["things"] or found["versus"]).strip(" ?.")) if found else []
    named = (thing.strip(QUOTES) for thing in things if len(thing.split()) <= WORDS_COMPARED)
    return tuple(islice(filter(None, named), MOST_SENTENCES))


def _manifest_asked(question: str) -> str:
    """Return what a question asks the version of that a manifest may state; empty for other questions."""
    return "version" if asks_for_newest(read_query(question)) else version_asked_of(question)


def _asked_name(fact: Fact, asked: _Asked) -> str:
    """Return the longest name by which the question may call a setting; empty if there is none."""
    return next((name for name in reversed(called(fact)) if name in asked.settings), "")


def _is_unset(fact: Fact) -> bool:
    return fact.kind == "none" or " ".join(words_of(fact.value)) in _UNSET


def _is_shown(fact: Fact, said: str) -> bool:
    """Tell whether ``said``, the text that states a fact, shows its value. A number must be written in digits."""
    return fact.kind != "number" or _DIGITS.search(said) is not None


def _is_in(name: str, names: frozenset[str]) -> bool:
    return any(f" {other}".endswith(f" {name}") for other in names)


def _candidates(
    item: FusedItem, asked: _Asked, valued: frozenset[str], declared: frozenset[tuple[str, str]]
) -> Iterator[_Candidate]:
    """Yield the sentences of a passage that may answer.

    In code these are the lines that state the setting in the question. If there are none, they are all lines if a line
    of code may answer, and else the comments and the lines that they describe.

    Args:
        valued: names of the settings for which some passage states a value. A statement that such a setting is unset is
            skipped; a statement that its value is *none* is skipped only if its own passage also states a value.
        declared: names of settings with their defaults; if a default is asked for, statements of other values come
            last.
    """
    text, citation = item.item.content, item.citation
    is_code = item.domain == Domain.CODE
    if line := _stated_version(item, asked.manifest):
        yield _Candidate(item, line, frozenset(), 0, True, False, False, is_told=True)
        return
    first = 0 if is_code else front_matter(text).end
    facts = [(fact, at) for fact in item.facts if first <= (at := _place(fact, item))[0] < len(text)]
    own = frozenset(fact.name for fact, _ in facts if not _is_unset(fact))
    names = {fact: name for fact, _ in facts if (name := _asked_name(fact, asked))}
    most = max((len(name.split()) for name in names.values()), default=0)
    names = {fact: name for fact, name in names.items() if len(name.split()) == most}  # of one owner, if one is asked
    if item.item.told is not None and not names and not asked.manifest:
        yield _told(item, item.item.told)
        return
    unset = [at for fact, at in facts if _is_unset(fact) and _is_in(fact.name, own if fact.kind == "none" else valued)]
    stated = [(fact, at) for fact, at in facts if fact in names and at not in unset]
    defaults = [(fact, at) for fact, at in facts if fact.attribute == "default"]
    if is_code and stated:
        units = [definition_at(text, at[0]) or lines_at(text, *at) for _, at in stated]
    elif is_code and asked.for_code:
        units = units_of(text, LONGEST, is_code=True)
    elif is_code:
        units = _with_values([*_comments(text)], [each for each in facts if each[1] not in unset], text, asked)
    else:
        units = [*_sentences(text, is_manual=is_called_manual(citation.source_path))]
        joined = {at: _join_to_name(text, units, fact, at) for fact, at in defaults}
        named = [joined[at] for _, at in stated if at in joined]
        apart = (unit for unit in units if not any(_overlap(unit, other) for other in joined.values()))
        units = [*_with_denials(text, _below_labels(text, sorted({*apart, *joined.values()}), asked))]
        units = named if named and asked.for_default else units
    if asked.named and not stated:  # the value of another setting is none of this one
        others = ((frozenset(fact.name.split()), at) for fact, at in defaults)
        unset += [at for name, at in others if not (asked.named <= name or name <= asked.named)]
    if asked.for_default and not stated:
        units = [unit for unit in units if not any(_overlap(unit, at) for at in unset)]
    fitting = [(fact, at) for fact, at in facts if fact.kind in asked.kinds and fact.attribute in _VALUES]
    values = [at for fact, at in stated or fitting if not _is_unset(fact) and _is_shown(fact, text[slice(*at)])]
    defaulted = frozenset(name for name, _ in declared) if asked.for_default or asked.named else frozenset[str]()
    of_use = [at for fact, at in stated if fact.name in defaulted and (fact.name, fact.value) not in declared]
    own_defaults = [at for fact, at in stated if fact.name in defaulted and (fact.name, fact.value) in declared]
    reached = [*_definition(item, asked), *_reached(item, asked)] if is_code else []
    may_lack_name = is_code and not asked.for_code and not stated
    units += reached
    named_text = f"{citation.title or ''}\n{text}"  # of what it defines
    whole = terms_of_units(named_text, [(0, len(named_text))] if asked.for_definition else [], asked.wanted)
    terms = [
        held.union(
            *(whole if unit in reached else ()),
            *(asked.settings[names[fact]] & asked.wanted for fact, at in stated if _overlap(unit, at)),
        )
        for unit, held in zip(units, terms_of_units(text, units, asked.wanted), strict=True)
    ]
    for place, unit in enumerate(units):
        if (words := said_words(text[slice(*unit)])) and (is_code or not _is_heading_or_question(text, unit)):
            is_echo = is_code and unit not in reached and _is_echo(words, asked) and " " in asked.pasted
            is_pasted = unit not in reached and words in asked.pasted
            if is_echo or is_pasted or words.strip() in _ASKS_FOR_DEFAULT:  # ``// Default``
                continue
            if (is_code and _BARE.fullmatch(text, *unit)) or _is_of_another_version(item, unit, terms[place], asked):
                continue
            says_value = (not asked.for_meaning and any(_overlap(unit, at) for at in values)) or (
                (asked.for_quantity and _QUANTITY.search(text, *unit) is not None)
                or (asked.for_default and not asked.named and _DEFAULT.search(text, *unit) is not None)
                or (asked.reason is not None and asked.reason.search(text, *unit) is not None)
                or (asked.for_meaning and len(_OF_SENTENCES.findall(text, *unit)) >= SAID)
                or (bool(asked.versioned) and _AT_LEAST.search(text, *unit) is not None)
                or unit in reached
            )
            is_declared = any(_overlap(unit, at) for at in own_defaults)
            is_of_use = not is_declared and any(_overlap(unit, at) for at in of_use)
            is_enough = asked.for_code or says_value or terms[place] >= asked.wanted
            join = _with_block if is_enough else _with_example
            join = _with_neighbour if asked.is_message and _is_echo(words, asked) else join
            shown = unit if is_code else join(text, units, place)
            refers = may_lack_name and _REFERS.match(text, *unit)
            shown = _with_definition(text, unit, _defined(item)) if refers else shown
            yield _Candidate(item, shown, terms[place], words.count(" ") - 1, says_value, is_declared, is_of_use)


def _stated_version(item: FusedItem, name: str) -> Unit | None:
    return stated_version(item.citation.source_path, item.item.content, name)


def _is_of_another_version(item: FusedItem, unit: Unit, terms: frozenset[str], asked: _Asked) -> bool:
    """Tell whether a sentence with a number, under no heading with what the version is asked of, does not name it."""
    if not asked.versioned or asked.versioned <= terms or not _DIGITS.search(item.item.content, *unit):
        return False
    place = item.citation
    above = sequence(f"{place.section or ''} {place.title or ''} {place.source_path}")
    return not asked.versioned <= frozenset(above) | _own_names(item)


def _definition(item: FusedItem, asked: _Asked) -> Iterator[Unit]:
    """Yield the line that defines the passage's function or class, joined to its comment, if the question asks for it.

    The question asks for it if it names or quotes a line of the passage, or asks where something is.
    """
    text, name = item.item.content, _defined(item)
    is_asked = bool(_named_lines(item, asked)) if asked.lines else asked.for_place
    is_asked |= bool(asked.compared) and str(name).lower() in asked.said
    if asked.pasted:
        is_asked = any(words in asked.pasted for words in map(said_words, text.split("\n")) if words.count(" ") > MARKS)
    if not is_asked or not (line := _signature(text, name)):
        return
    first, last = line
    comments = [unit for unit in _comments(text) if _WORDS.search(text, *unit)]
    above, below = [unit for unit in comments if unit[1] <= first], [unit for unit in comments if unit[0] >= last]
    for start, end in [*reversed(above), *below[:1]]:
        both = min(start, first), max(end, last)
        if both[1] - both[0] > LONGEST or _WORDS.search(text, min(end, last), max(start, first)):
            break
        first, last = both
    yield first, last


def _defined(item: FusedItem) -> str:
    """Return the name of the function or class that a passage defines; empty if there is none."""
    metadata = item.item.metadata
    name = str(metadata.get("function_name") or "")
    # every class has it
    return name if name and not _BARE.fullmatch(f"def {name}") else str(metadata.get("class_name") or "")


def _signature(text: str, name: str) -> Unit | None:
    """Return the line that defines a name, without its indentation."""
    found = re.search(rf"^[^\S\n]*(?!#|//|--|/?\*)(\S[^\n]*\b{re.escape(name)}\b[^\n]*)", text, re.MULTILINE)
    return found.span(1) if name and found else None


def _with_definition(text: str, unit: Unit, name: str) -> Unit:
    """Return a sentence of the comment right above or below the line that defines a name together with that line."""
    line = _signature(text, name)
    comments = (comment.span() for comment in _COMMENT.finditer(text))
    begin, end = next((span for span in comments if span[0] <= unit[0] < span[1]), unit)
    if line is None or _WORDS.search(text, min(end, line[1]), max(begin, line[0])):
        return unit
    both = min(unit[0], line[0]), max(unit[1], line[1])
    return both if both[1] - both[0] <= LONGEST else unit


def _named_lines(item: FusedItem, asked: _Asked) -> set[int]:
    """Return the lines of a passage that the question names, counted from 0."""
    top, bottom = item.citation.line_range or (0, -1)
    same = (place.line for place in asked.lines if place.path == item.citation.source_path)
    return {line - top for line in same if top <= line <= bottom}


def _reached(item: FusedItem, asked: _Asked) -> Iterator[Unit]:
    """Yield, for each line that the question names or repeats, the text from the condition above it to the line."""
    text, named = item.item.content, _named_lines(item, asked)
    lines, at = list[tuple[int, str]](), 0
    for number, line in enumerate(text.split("\n")):
        lines.append((at, line))
        at += len(line) + 1
        if number not in named and not _uses(line, asked.bound) and not _is_echo(line, asked):
            continue
        above, indent = number, _indent(line) + 1
        while above >= 0:
            said = lines[above][1]
            if said.strip() and _indent(said) < indent:
                if _CONDITION.match(said):
                    break
                indent = _indent(said) + (_ELSE.match(said) is not None)  # its condition stands beside it
            above -= 1
        while above > 0 and _COMMENT_LINE.match(lines[above - 1][1]):
            above -= 1
        # A text of several lines is not cut.
        closed = text.find('"#' if 'r#"' in line else '"', at) + 1 if line.count('"') % 2 else 0
        end = max(at - 1, closed)
        if above == number and (body := _LINE.search(text, at)) and body.start() - at > _indent(line):
            end = body.end()  # a condition says nothing without what it leads to
        is_near = above >= 0 and end - lines[above][0] <= (LONGEST_SENTENCE if closed else LONGEST)
        begin = lines[above if is_near else number]
        if is_near or (not asked.bound and end - at <= LONGEST and messages_in(line, asked.words)):
            yield begin[0] + _indent(begin[1]), end


def _uses(text: str, names: frozenset[str]) -> bool:
    return bool(names) and not names.isdisjoint(_WORDS.findall(text))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_echo(said: str, asked: _Asked) -> bool:
    """Tell whether a text says little but what the question says."""
    words = frozenset(_WORDS.findall(said.lower()))
    is_alike = len(words) >= LEAST_ECHO and len(words & asked.said) >= ECHO_SHARE * len(words)
    return is_alike or bool(messages_in(said, asked.words))


def _formats(item: FusedItem, asked: _Asked) -> bool:
    """Tell whether code makes the message that is asked for out of values, of which a passage of values says less."""
    return item.domain == Domain.CODE and bool(messages_in(item.content, asked.words, with_values=True))


def _bound_names(items: Sequence[FusedItem], asked: _Asked) -> frozenset[str]:
    """Return the names to which code binds the message that is asked for: what raises it may stand elsewhere."""
    lines = chain.from_iterable(item.item.content.split("\n") for item in items if item.domain == Domain.CODE)
    return frozenset(found[1] for line in lines if (found := _BOUND.match(line)) and messages_in(line, asked.words))


def _told(item: FusedItem, fact: Fact) -> _Candidate:
    """Return as a candidate the text that states ``fact``, with the words that describe it."""
    text, at = item.item.content, _place(fact, item)
    before = [each for each in item.facts if each.span.start <= fact.span.start]
    read = [unit for each, unit in described(before, text, fact.span.start - at[0]) if each == fact]
    first, last = read[-1] if read and read[-1][0] < read[-1][1] else lines_at(text, *at)
    if not is_identifier(fact.name):  # what stands under a heading in words says the value without it
        first = max([first, *(gap.end() for gap in _GAP.finditer(text, first, at[0] + 1))])
    if last - first > LONGEST:
        end = _SENTENCE_END.search(text, at[1], last)
        last = end.end() if end else at[1]
    if last - first > LONGEST_SENTENCE:
        first, last = _join_to_name(text, [*_sentences(text)], fact, at)
    return _Candidate(item, (first, last), frozenset(), 0, True, False, False, is_told=True)


def _with_values(comments: Sequence[Unit], stated: Sequence[tuple[Fact, Unit]], text: str, asked: _Asked) -> list[Unit]:
    """Return the sentences of comments, and the lines that state a value, each joined to the words that describe it.

    These words are the comment directly above the line, or the name that a comment gives to a default. If a value is
    asked for, a line of a configuration is also returned without such words.
    """
    units = list(comments)
    for fact, at in stated:
        if any(_overlap(unit, at) for unit in units) and fact.side == "documentation":
            told = _join_to_name(text, units, fact, at)
        else:
            first, end, is_told = statement_at(text, *at)
            mark = _COMMENT_MARK.match(text, first)
            if not mark or not (is_told or (asked.for_value and fact.side == "configuration")):
                continue
            told = mark.end(), end
        units = sorted([*(unit for unit in units if not _overlap(unit, told)), told])
    return units


def _place(fact: Fact, item: FusedItem) -> Unit:
    """Return the range of a fact in its passage; if the passage is shortened, the range of its line."""
    first, last = item.citation.char_range
    text, numbers = item.item.content, item.citation.line_range
    if len(text) != last - first and numbers and text.count("\n") == numbers[1] - numbers[0]:
        lines = text.split("\n")
        number = fact.line + 1 - numbers[0]
        if 0 <= number < len(lines):
            start = sum(len(line) + 1 for line in lines[:number])
            return start, start + len(lines[number])
    return fact.span.start - first, fact.span.end - first


def _join_to_name(text: str, units: Sequence[Unit], fact: Fact, at: Unit) -> Unit:
    """Return the range from the sentence or heading that names the setting to the end of the sentence with its value.

    If the value comes first below the heading, the sentence after it is included for its subject.
    """
    saying = [place for place, unit in enumerate(units) if _overlap(unit, at)]
    if not saying:
        return at
    (alone, _), (_, end) = units[saying[0]], units[saying[-1]]
    name = frozenset(sequence(fact.name))
    for place in range(saying[0], -1, -1):
        start = units[place][0]
        if end - start > LONGEST_SENTENCE:
            break
        if name <= frozenset(sequence(text[start : units[place][1]])):
            said = (unit for unit in units[place:] if _WORDS.search(text, *unit))
            below = (first for first, last in said if not _is_heading_or_question(text, (first, last)))
            first = min(next(below, alone), alone)
            is_label = saying[0] <= place + NEAR_NAME and _LABEL.fullmatch(text, *units[place]) is not None
            after = units[saying[-1] + 1 :][: place < saying[0] and (first == alone or is_label)]
            is_near = after and after[0][1] - first <= LONGEST and not _begins_another(text, after[0])
            return first, after[0][1] if is_near else end
    return alone, end


def _below_labels(text: str, units: Sequence[Unit], asked: _Asked) -> list[Unit]:
    """Return the units. A line that is only a label for a wanted word is joined to the text below it, or dropped.

    If a value is asked for and stands before the next label, all text up to the value is joined, else one sentence.
    """
    says = _DEFAULT if asked.for_default else _QUANTITY if asked.for_quantity else _WORDS
    joined: list[Unit] = []
    for place, unit in enumerate(units):
        if joined and unit[0] < joined[-1][1]:
            continue
        label = None if _is_heading_or_question(text, unit) else _LABEL.fullmatch(text, *unit)
        names = frozenset(sequence(label["names"])) - FUNCTION_TERMS if label else frozenset[str]()
        if not names or not names <= asked.wanted:
            joined.append(unit)
            continue
        below = list(
            takewhile(
                lambda other: not _begins_another(text, other),
                (other for other in units[place + 1 :] if _WORDS.search(text, *other)),
            )
        )
        saying = (other for other in below if says.search(text, *other) and other[1] - unit[0] <= LONGEST)
        if below:
            joined.append((unit[0], next(saying, below[0])[1]))
    return joined


def _with_denials(text: str, units: Sequence[Unit]) -> Iterator[Unit]:
    """Yield the units. Each item of a denied list (``Not supported:``) is joined to the sentence above the list.

    An item that is too far from this sentence is left out.
    """
    denied_from: int | None = None
    for first, last in units:
        said = text[first:last].strip()
        if not _ENTRY_MARK.match(said):
            is_denial = said.endswith(":") and not NEGATIONS.isdisjoint(_WORDS.findall(said.lower()))
            denied_from = first if is_denial else None
            yield first, last
        elif denied_from is None or last - denied_from <= LONGEST_SENTENCE:
            yield first if denied_from is None else denied_from, last


def _with_neighbour(text: str, units: Sequence[Unit], place: int) -> Unit:
    """Return a unit with the sentence that leads to it, or else the one behind it; the unit alone if both are far."""
    said = [unit for unit in units if not _is_heading_or_question(text, unit) and _WORDS.search(text, *unit)]
    at = said.index(units[place])
    (first, last), before, behind = units[place], said[max(0, at - 1)], said[min(at + 1, len(said) - 1)]
    if text[slice(*before)].rstrip().endswith(":") and _SENTENCE_END.search(text, *before) is None and at > 1:
        before = min(before, (said[at - 2][0], before[1]))
    if before[0] < first and last - before[0] <= LONGEST and text[slice(*before)].rstrip().endswith(":"):
        return before[0], last
    return (first, behind[1]) if behind[1] - first <= LONGEST else (first, last)


def _with_example(text: str, units: Sequence[Unit], place: int) -> Unit:
    """Return a unit of prose. A line of code in it becomes the whole block.

    If the line behind a unit introduces such a block (*For example:*), both are included.
    """
    unit, *others = units[place:]
    behind = next((other for other in others if _WORDS.search(text, *other)), unit)
    is_lead = 0 < len(_WORDS.findall(text, *behind)) <= WORDS_OF_LEAD and text[slice(*behind)].rstrip().endswith(":")
    for block in chain(_FENCED.finditer(text), _INDENTED.finditer(text)):
        first, last = block.span("code")
        if first <= unit[0] < last:
            return (first, last) if last - first <= LONGEST else unit
        is_behind = is_lead and last - unit[0] <= LONGEST and behind[1] <= first
        if is_behind and not _WORDS.search(_MARKUP.sub("", text[behind[1] : first])):
            return unit[0], last
    return _with_block(text, units, place)


def _with_block(text: str, units: Sequence[Unit], place: int) -> Unit:
    """Return a unit. If it introduces a list or a block of code and denies nothing, include that block too."""
    units = units[place:]
    first, last = units[0]
    lead = text[first:last].rstrip().rstrip("*_")
    # The end of a fence looks like the beginning of one.
    leads = lead.endswith(":") or (
        len(units) > 1 and any(fence.start() == units[1][0] for fence in _FENCED.finditer(text))
    )
    if not leads or _is_heading_or_question(text, units[0]) or not NEGATIONS.isdisjoint(_WORDS.findall(lead.lower())):
        return units[0]
    is_begun, fences = False, [fence.span(2) for fence in _FENCED.finditer(text)]
    for start, end in units[1:]:
        is_fenced = any(opened <= start < closed for opened, closed in fences)
        is_entry = not is_fenced and _ENTRY_MARK.match(text, start) is not None
        is_apart = text[:start].endswith("\n\n")
        # goes on below a line without words
        is_code = is_fenced or _column(text, (start, end)) > _column(text, units[0])
        longest = LONGEST_SENTENCE if is_code and not is_entry else LONGEST
        is_behind = is_begun and _FENCE.search(text, last, start) is not None  # prose after the code is another matter
        if is_behind or end - first > longest or (is_begun and is_apart and not is_entry and not is_code):
            break
        if _WORDS.search(text, start, end) and not _is_heading_or_question(text, (start, end)):
            is_begun, last = True, end
    return first, last


def _begins_another(text: str, unit: Unit) -> bool:
    return _LABEL.fullmatch(text, *unit) is not None or _is_heading_or_question(text, unit)


def _overlap(unit: Unit, other: Unit) -> bool:
    return unit[0] < other[1] and other[0] < unit[1]


def _is_heading_or_question(text: str, unit: Unit) -> bool:
    is_underlined = _UNDERLINE.match(text, unit[1]) is not None and not text[slice(*unit)].endswith("\n\n")  # a rule
    return is_underlined or _NO_ANSWER.fullmatch(text, *unit) is not None


def _sentences(text: str, *, is_manual: bool = False) -> Iterator[Unit]:
    """Yield the sentences of prose after its front matter, and the lines of its fenced code."""
    at = front_matter(text).end
    for fence in _FENCED.finditer(text):
        yield from _units_in(text, at, fence.start(2), is_manual=is_manual)
        yield from _units_in(text, *fence.span(2), is_code=True)
        at = fence.end(2)
    yield from _units_in(text, at, len(text), is_manual=is_manual)


def _units_in(text: str, first: int, last: int, *, is_code: bool = False, is_manual: bool = False) -> Iterator[Unit]:
    most = LONGEST if is_code else LONGEST_SENTENCE
    for start, end in units_of(text[first:last], most, is_code=is_code, is_manual=is_manual):
        yield first + start, first + end


def _comments(text: str) -> Iterator[Unit]:
    """Yield the sentences of comments and docstrings."""
    for comment in _COMMENT.finditer(text):
        first, close = comment.span(comment.lastindex or 0)
        # Each line of a comment begins with its sign, which is no heading there: a sentence goes on.
        said = text[first:close]
        is_marked = comment.lastindex == comment.re.groups and (said.count("\n") > 1 or text[close : close + 1] != "\n")
        mark = _STAR if comment.lastindex == STARRED else _HASH if is_marked else None
        read = mark.sub(lambda sign: " " * len(sign[0]), said) if mark else said
        for start, end in units_of(read, LONGEST_SENTENCE, is_code=False):
            last = first + start + len(read[start:end].rstrip())
            marked = _COMMENT_MARK.match(text, first + start, last)
            unit = marked.end() if marked else first + start, last
            is_heading = _HEADED.match(read, start, end) and not _OF_SENTENCES.search(read, start, end)
            if not is_heading and not re.fullmatch(_LINKED, text[slice(*unit)]):
                yield unit


def _sentence(item: FusedItem, unit: Unit) -> ExtractedSentence:
    text = item.item.content
    start, end = unit
    stripped = text[start:end].strip()
    if item.domain != Domain.CODE and (mark := _ENTRY_MARK.match(stripped)):
        stripped = stripped[mark.end() :]
    first = start + text[start:end].index(stripped)
    return ExtractedSentence(item.chunk_id, stripped, Span(first, first + len(stripped)))
