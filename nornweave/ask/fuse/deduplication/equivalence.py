"""Decide whether two texts say the same, and whether one of them says more.

The texts are aligned by runs of three words that both contain. The words outside of these runs are unmatched:

* No text has unmatched words: the texts say the same.
* Only one text has unmatched words: that text says more, and only the other one may be dropped.
* Both have unmatched words at the same place: the texts share a template but state different values (``404`` and
  ``409``, ``create_user`` and ``delete_user``). They are not duplicates, however similar they look.

A word is *covered* if it belongs to a run of three words that the other text contains as well. A unit *matches* if most
of its words are covered; the stretches of uncovered words in it are its gaps.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq, Levenshtein

from nornweave.ask.fuse.deduplication.normalized_text import TextReading, Unit
from nornweave.ask.fuse.records import MergeReason
from nornweave.core.text.words import CONTENT, FUNCTION, NAME, TURN, VALUE

# An item is dropped when this share of its sentences stands in a longer one ...
CONTAINED_SENTENCES = 0.6
# ... and, as asides count as sentences too, this share of its words; more of them stand for too few sentences.
CONTAINED_WORDS = 0.5
CONTAINED_WORDS_ALONE = 0.7
# Below this many words a text is a remark: that it stands inside another one says nothing.
REMARK_WORDS = 5
# Texts of the same meaning have a cosine above this ...
SAME_MEANING_COSINE = 0.85
# ... and, so that it is not only about the same, shares so many of the content words of the shorter text.
LEXICAL_SUPPORT = 0.75
# One text with so many times the content words of the other says more, whatever their cosine.
SAYS_MORE = 1.5
# Of the places between the first and the last that differ, so many do when words have exchanged theirs.
EXCHANGED_PLACES = 0.7
# Texts of which this share comes in the same order go the same way.
PARALLEL_SHARE = 0.75
# Ordinary words that were exchanged, as a share of the shorter text, which an editor may have done.
EDITED_SHARE = 0.03
# From this length on one letter more or less is a spelling mistake.
MISSPELT_LETTERS = 5
# Texts with more pairs of words that differ have not been misspelt.
MISSPELT_PAIRS = 2_500

# "In substance": so much of what a sentence says may be missing.
MISSING_IN_SENTENCE = 0.2
# A unit of which this share stands in the other text is the same unit, perhaps with other words in some places.
MATCHED_SHARE = 0.5
# So many words in a row are a place in a sentence where other words may stand; more are a statement of their own.
SLOT_WORDS = 3
# A word more inside a sentence of fewer words makes it another sentence ("lists buckets", "lists public buckets").
SHORT_UNIT = 12


@dataclass(frozen=True, slots=True)
class Likeness:
    """The comparison of two texts that say the same: reason, similarity in [0, 1], and which text may be dropped."""

    reason: MergeReason
    similarity: float
    first_may_go: bool
    second_may_go: bool


def compare(
    first: TextReading, second: TextReading, *, threshold: float, cosine: float | None = None
) -> Likeness | None:
    """Compare two texts that may say the same.

    Args:
        threshold: the least ``token_sort_ratio``, in [0, 1].
        cosine: the cosine of their embeddings; ``None`` if they have none.

    Returns:
        ``None`` if they do not say the same. Otherwise at least one of the two may be dropped.
    """
    if not first.forms or not second.forms:
        return None
    ratio = fuzz.ratio(first.ordered, second.ordered, score_cutoff=threshold * 100) / 100
    covered, covered_there = cover(first, second), cover(second, first)
    share = max(covered.count(1) / len(first), covered_there.count(1) / len(second))
    if not ratio and cosine is None and share < CONTAINED_WORDS:
        return None
    one, other = leave(first, covered), leave(second, covered_there)
    if _other_code(one, other):
        return None
    mine, theirs = _without_common(one.slots, other.slots)
    if Counter(one.turns) != Counter(other.turns) or _in_each_others_places(first.said, second.said):
        return None
    if _other_bonds(first, second):
        return None
    found = None
    if not _has_exchanged_words(mine, theirs, one, other, min(len(first), len(second))):
        found = _same_text(first, second, one, other, ratio) if ratio >= threshold else None
        found = found or _compare_contained(first, second, one, other)
    if found is None and cosine is not None and cosine > SAME_MEANING_COSINE and not one.inner ^ other.inner:
        found = _same_meaning(first, second, cosine)
    return found


def _other_code(one: Leftovers, other: Leftovers) -> bool:
    """Tell whether matching lines of code still differ, in a word or in an operator."""
    if one.code_differs or other.code_differs:
        return True
    # Every word of these lines stands in the other text, but each text has one more often than the other.
    mine, theirs = _without_common(chain.from_iterable(one.lines), chain.from_iterable(other.lines))
    if mine and theirs:
        return True
    if any(other.lines.get(line, operators) != operators for line, operators in one.lines.items()):
        return True
    return "async" in one.slots or "async" in other.slots


def _weighty(forms: Iterable[str], sorts: Mapping[str, int]) -> bool:
    """Tell whether any of the words is a name or a value."""
    return any(NAME <= sorts[form] <= VALUE for form in forms)


def _without_common(mine: Iterable[str], theirs: Iterable[str]) -> tuple[list[str], list[str]]:
    ours, others = Counter(mine), Counter(theirs)
    return list((ours - others).elements()), list((others - ours).elements())


def _has_exchanged_words(
    mine: Sequence[str], theirs: Sequence[str], one: Leftovers, other: Leftovers, shorter: int
) -> bool:
    """Tell whether more words are replaced by others than an editor would replace."""
    left, right = _without_misspelt(mine, theirs, one.sorts, other.sorts)
    if not left or not right:
        return False
    ordinary = all(one.sorts[form] == CONTENT for form in left) and all(other.sorts[form] == CONTENT for form in right)
    return not ordinary or len(left) + len(right) > EDITED_SHARE * shorter


def _without_misspelt(
    mine: Sequence[str], theirs: Sequence[str], sorts: Mapping[str, int], sorts_there: Mapping[str, int]
) -> tuple[list[str], list[str]]:
    left, right = list(mine), list(theirs)
    if len(left) * len(right) > MISSPELT_PAIRS:
        return left, right
    for form in mine:
        for candidate in right:
            if sorts[form] == sorts_there[candidate] == CONTENT and _misspelt(form, candidate):
                left.remove(form)
                right.remove(candidate)
                break
    return left, right


def _misspelt(one: str, other: str) -> bool:
    """Tell whether two words differ by one letter: added, dropped, replaced or swapped. The first letter must agree."""
    if one[0] != other[0] or max(len(one), len(other)) < MISSPELT_LETTERS:
        return False
    edits = Levenshtein.distance(one, other, score_cutoff=2)
    return edits <= 1 or (edits == 2 and sorted(one) == sorted(other))


def _in_each_others_places(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    """Tell whether the same words have exchanged places: ``on Linux a, on macOS b`` and ``on Linux b, on macOS a``.

    If only neighbours or clauses are exchanged (``a and b``, ``b and a``), the texts say the same and the result is
    ``False``. In such texts every word between the first and the last difference differs.
    """
    if len(mine) != len(theirs) or mine == theirs:
        return False
    places = [place for place, (one, other) in enumerate(zip(mine, theirs, strict=True)) if one != other]
    between = places[-1] - places[0] + 1
    return len(places) <= EXCHANGED_PLACES * between and sorted(mine) == sorted(theirs)


def _other_bonds(first: TextReading, second: TextReading) -> bool:
    """Tell whether some word stands beside different values in the two texts (``one tablet``, ``two tablets``)."""
    before, after, ways = _bonds(first)
    before_there, after_there, ways_there = _bonds(second)
    for mine, theirs in ((before, before_there), (after, after_there)):
        for form in mine.keys() & theirs.keys():
            if mine[form] - theirs[form] and theirs[form] - mine[form]:
                return True
    return bool(ways["from"] & ways_there["to"] and ways["to"] & ways_there["from"])


def _bonds(text: TextReading) -> tuple[defaultdict[str, set[str]], ...]:
    """Return three mappings: word → values before it; word → values after it; ``from`` and ``to`` → words after it."""
    before: defaultdict[str, set[str]] = defaultdict(set)
    after: defaultdict[str, set[str]] = defaultdict(set)
    ways: defaultdict[str, set[str]] = defaultdict(set)
    for unit in text.units if VALUE in text.sorts.values() else ():
        for one, other in zip(unit.said, unit.said[1:], strict=False):
            is_value, is_value_there = text.sorts[one] == VALUE, text.sorts[other] == VALUE
            if is_value and not is_value_there:
                before[other].add(one)
            elif is_value_there and not is_value:
                after[one].add(other)
    for way in {"from", "to"} & text.sorts.keys():
        for place, form in enumerate(text.forms):
            if form == way:
                ways[way].update(saying(text, range(place + 1, min(place + 4, len(text))))[:1])
    return before, after, ways


def _same_text(
    first: TextReading, second: TextReading, one: Leftovers, other: Leftovers, ratio: float
) -> Likeness | None:
    if not all(one.code_matches) or not all(other.code_matches):
        return None
    mine, theirs = _without_common([*one.slots, *one.alone], [*other.slots, *other.alone])
    if any(one.sorts[form] == TURN for form in mine) or any(other.sorts[form] == TURN for form in theirs):
        return None
    if _has_exchanged_words(mine, theirs, one, other, min(len(first), len(second))):
        return None
    mine, theirs = _without_misspelt(mine, theirs, one.sorts, other.sorts)
    if (not theirs and one.inner & {*mine}) or (not mine and other.inner & {*theirs}):
        return None
    first_may_go, second_may_go = not _matters(mine, first), not _matters(theirs, second)
    if not first_may_go and not second_may_go:
        return None
    return Likeness("same_text", ratio, first_may_go, second_may_go)


def _matters(forms: Collection[str], text: TextReading) -> bool:
    """Tell whether information would be lost if these words of a text were dropped."""
    return any(text.sorts[form] > CONTENT for form in forms) or len(forms) > EDITED_SHARE * len(text)


def _compare_contained(first: TextReading, second: TextReading, one: Leftovers, other: Leftovers) -> Likeness | None:
    first_inside = len(first) <= len(second) and _inside(first, one, second, other)
    second_inside = len(second) <= len(first) and _inside(second, other, first, one)
    if not first_inside and not second_inside:
        return None
    shares = [rest.words_there / rest.words for rest, inside in ((one, first_inside), (other, second_inside)) if inside]
    return Likeness("contained", max(shares), first_inside, second_inside)


def _inside(text: TextReading, rest: Leftovers, longer: TextReading, longer_rest: Leftovers) -> bool:
    """Tell whether ``longer`` says everything of weight that ``text`` says."""
    if len(text) < REMARK_WORDS or not rest.sentences or longer_rest.inner - rest.inner or not all(rest.code_matches):
        return False
    sentences, words = rest.sentences_there / rest.sentences, rest.words_there / rest.words
    enough = words >= CONTAINED_WORDS_ALONE or (words >= CONTAINED_WORDS and sentences >= CONTAINED_SENTENCES)
    if not enough or _split(longer_rest.code_matches):
        return False
    return not _weighty({*rest.slots, *rest.alone} - longer.sorts.keys(), text.sorts)


def _split(matched: Sequence[bool]) -> bool:
    """Tell whether a line that does not match stands between two lines that match."""
    if True not in matched:
        return False
    first, last = matched.index(True), len(matched) - matched[::-1].index(True)
    return not all(matched[first:last])


def _same_meaning(first: TextReading, second: TextReading, cosine: float) -> Likeness | None:
    if any(unit.is_code for unit in (*first.units, *second.units)):
        return None
    mine, theirs = {*first.said}, {*second.said}
    if not mine or not theirs or len(mine & theirs) < LEXICAL_SUPPORT * min(len(mine), len(theirs)):
        return None
    more, more_there = mine - theirs, theirs - mine
    turned = any(first.sorts[form] == TURN for form in more) or any(second.sorts[form] == TURN for form in more_there)
    if turned or _same_template(first, second):
        return None
    first_may_go = len(mine) < SAYS_MORE * len(theirs) and not _weighty(more, first.sorts)
    second_may_go = len(theirs) < SAYS_MORE * len(mine) and not _weighty(more_there, second.sorts)
    if not first_may_go and not second_may_go:
        return None
    return Likeness("same_meaning", cosine, first_may_go, second_may_go)


def _same_template(first: TextReading, second: TextReading) -> bool:
    """Tell whether most words come in the same order, as in no paraphrase, but each text has words of its own."""
    shorter = min(len(first.said), len(second.said))
    if LCSseq.similarity(first.said, second.said) < PARALLEL_SHARE * shorter:
        return False
    mine, theirs = _without_common(first.said, second.said)
    return all(_without_misspelt(mine, theirs, first.sorts, second.sorts))


@dataclass(slots=True)
class Leftovers:
    """The content words of one text that the other does not have.

    Attributes:
        sentences, words: the number of sentences and words of the text.
        sentences_there: the number of sentences that the other text holds in substance.
        words_there: the number of words in these sentences.
        slots: the words in short gaps (runs of missing words) of matching prose and of first lines of functions.
        turns: the words in any gap of a matching unit that reverse its sense, such as ``not``.
        inner: the words in gaps inside short units, not at either end of the unit.
        alone: the missing words of sentences that do not match, and of long gaps in sentences that match.
        code_differs: whether some line of code matches although words of it are missing.
        code_matches: for each line of code, in order, whether it matches.
        lines: matching line of code → its operators.
    """

    sorts: Mapping[str, int]
    sentences: int = 0
    words: int = 0
    sentences_there: int = 0
    words_there: int = 0
    slots: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    inner: set[str] = field(default_factory=set)
    alone: list[str] = field(default_factory=list)
    code_differs: bool = False
    code_matches: list[bool] = field(default_factory=list)
    lines: dict[tuple[str, ...], str] = field(default_factory=dict)


def leave(text: TextReading, covered: bytes) -> Leftovers:
    """Return the words of a text that the other text does not have, given the result of ``cover``."""
    rest = Leftovers(text.sorts, sentences=len(text.units), words=len(text))
    for unit in text.units:
        there = covered.count(1, unit.start, unit.end)
        matched = there >= MATCHED_SHARE * len(unit)
        if unit.is_code:
            rest.code_matches.append(matched)
            if matched:
                rest.lines[text.forms[unit.start : unit.end]] = unit.operators
        if there == len(unit):
            rest.sentences_there += 1
            rest.words_there += len(unit)
        elif matched:
            _add_gaps(rest, text, unit, covered)
        elif not unit.is_code:
            rest.alone += saying(text, (place for place in range(unit.start, unit.end) if not covered[place]))
    return rest


def cover(text: TextReading, other: TextReading) -> bytes:
    """Return for each word 1 if it belongs to a shingle of ``other``, else 0."""
    found = bytes(map(other.distinct.__contains__, text.shingles))
    words = len(text.forms)
    if words <= 3:
        return found * words
    # A shingle at a place covers that word and the next two: the same bytes, moved on by one and by two places.
    number = int.from_bytes(found + b"\0\0", "big")
    return (number | number >> 8 | number >> 16).to_bytes(words, "big")


def saying(text: TextReading, places: Iterable[int]) -> list[str]:
    """Return the content words among the words at these places."""
    return [form for place in places if text.sorts[form := text.forms[place]] > FUNCTION]


def _add_gaps(rest: Leftovers, text: TextReading, unit: Unit, covered: bytes) -> None:
    code = unit.is_code
    missing: list[str] = []
    for is_covered, places in groupby(range(unit.start, unit.end), covered.__getitem__):
        if is_covered:
            continue
        gap = list(places)
        said = saying(text, gap)
        missing += said
        if code and text.forms[unit.start] != "def":
            rest.code_differs = True
        elif code or len(gap) <= SLOT_WORDS:
            rest.slots += said
        else:
            rest.alone += said
    rest.turns += [form for form in missing if text.sorts[form] == TURN]
    if not code and len(unit) < SHORT_UNIT:
        rest.inner |= {*missing} & {*unit.said[1:-1]}
    if len(missing) <= MISSING_IN_SENTENCE * len(unit.said):
        rest.sentences_there += 1
        rest.words_there += len(unit)
