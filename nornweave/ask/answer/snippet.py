"""Long text → its part that answers, with every cut marked ``[…]``.

Text is cut between *units*: sentences, list items and table rows of prose, lines of code. ``shorten`` keeps the units
that match the query, ``cut`` the first ones. A unit is divided only if it alone is longer than the limit, and then
between words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from nornweave.core.text.analyzer import FUNCTION_TERMS, distinct_terms
from nornweave.core.types import Span

MARK = "[…]"
# A mark and the blanks or line breaks on both its sides.
MARK_ROOM = len(MARK) + 2
# What follows after this many characters is taken for cut: no chunk of ours is as long, a stranger's may be a book.
CONSIDERED_CHARACTERS = 50_000
# Pieces of a sentence (a transcript without full stops) or line (minified code) that is longer than the room.
WINDOW_CHARACTERS = 240
# A unit counts half at this distance from what answers; what stands above it, as a name does, at twice that.
NEAR_CHARACTERS, ABOVE_SHARE = 200, 0.5
# What stands below a sentence that answers goes on with the answer, whatever its words: of the best unit.
BELOW_SHARE = 0.5
# What a unit gains from a relevant neighbour, and a line of code from a relevant line of its block: it makes that
# readable.
NEIGHBOUR_SHARE = 0.25
BLOCK_SHARE = 0.5
# The first sentence says what the rest is about, the first lines of code are its signature; more than this part of the
# room they have to earn.
OPENING_SHARE = {False: 0.34, True: 0.5}
# A line that breaks before this column was not broken for want of room.
WRAP_COLUMN = 40

Unit = tuple[int, int]

_SENTENCE_END = re.compile(r"[.!?…][\"')\]»”’*_`]{0,3}+\s++(?![a-z])|[。！？][\"')\]」』”’]{0,2}+\s*+")
_NO_END = re.compile(
    r"(?:\b(?:e\.?g|i\.?e|vs|cf|resp|approx|ca|Dr|Mr|Mrs|Ms|No|Nr|Fig|Eq|Sec|Vol|pp?|[A-Z])|^\s*\d+)$", re.M
)
_LINE_END = re.compile(r"\n(?:[^\S\n]*+\n)*+")
_STRUCTURE = re.compile(
    r"\s*+(?:[-*+•]\s|#{1,6}\s|\.\.\s|\d{1,3}[.)]\s|\[[\d\s]|[|>]|<(?!\w+:)|```|~~~|==="
    r"|[^\W\d][\w.'-]*+(?: [\w.'-]++){0,2}:[^\S\n]++\S)"
)
# What stands below the tag of a manual: a sentence, or its type in brackets.
_BELOW_TAG = re.compile(r"\s*+(?:[A-Z(]|\Z)")
_HEADING_OF_MANUAL = re.compile(r"[^\S\n]*+[A-Z][A-Z /-]+\n\s*+[A-Z(]")
_SPACE = re.compile(r"\s+")
# Scripts that are written without blanks between words (Han, Kana).
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_FENCED = re.compile(r"^[^\S\n]*(```|~~~)[^\n]*\n.*?^[^\S\n]*\1[^\S\n]*$\n?", re.DOTALL | re.MULTILINE)
# What may stand above a signature: decorators, attributes, comments.
_ABOVE_SIGNATURE = re.compile(r"\s*+(?:@|#|//|/\*|\*|--|\[|$)")
ABOVE_LINES = 60
SIGNATURE_LINES = 8


def shorten(
    text: str, query_terms: Sequence[str], max_characters: int, *, is_code: bool, around: Span | None = None
) -> str:
    """Keep the most relevant units of a text that is too long.

    The score of a unit is ``Σ ln(1 + units / units with the term)`` over the query's terms in it, so that terms rare in
    this text count most. A quarter of its best neighbour's score is added, and for a line of code half of the best
    score in the block that it opens. The first sentence (the signature of code) stays as context. The remaining room
    goes to neighbouring units, earliest first.

    Args:
        around: the range that answers; it is kept, and other units count less with their distance from it.

    Returns:
        ``text`` itself if it fits; otherwise whole units in their order, each gap marked once. If not even one word
        fits, the mark alone or an empty text.
    """
    if len(text) <= max_characters:
        return text
    units = units_of(text[:CONSIDERED_CHARACTERS], max_characters - 2 * MARK_ROOM, is_code=is_code)
    if len(text) > CONSIDERED_CHARACTERS:
        units.pop()  # whatever it is, it may end anywhere
    if not units:
        return _only_mark(max_characters)
    if not is_code:
        units = _join_blocks(text, units, max_characters // 2)
    relevant, rest = _by_relevance(text, units, query_terms, max_characters, around, is_code=is_code)
    chosen = _fitting(text, units, relevant, rest, max_characters)
    return _join_units(text, [units[place] for place in chosen]) if chosen else _only_mark(max_characters)


def _join_blocks(text: str, units: Sequence[Unit], most: int) -> list[Unit]:
    """Return the units. Those of a fenced block that is short enough become one, so that no example is cut."""
    blocks = [block.span() for block in _FENCED.finditer(text) if block.end() - block.start() <= most]
    starts = {start for first, last in blocks for start, _ in units if first < start < last}
    kept = [start for start, _ in units if start not in starts]
    return [*pairwise([*kept, units[-1][1]])]


def cut(text: str, max_characters: int, *, is_code: bool) -> str:
    """Keep the beginning of a text that is too long, up to the end of a unit. The cut is marked.

    If whole units fill less than half of the room, the next unit is cut between words.

    Returns:
        ``text`` itself if it fits; never more than ``max_characters``. If not even one word fits, the mark alone or an
        empty text.
    """
    if len(text) <= max_characters:
        return text
    room = max_characters - MARK_ROOM
    # What is longer than half the room is divided: better an end between words than nearly nothing.
    units = units_of(text[: max_characters + WINDOW_CHARACTERS], room // 2, is_code=is_code)
    end = max((end for start, end in units[:-1] if len(text[:end].rstrip()) <= room), default=0)
    beginning = text[:end].rstrip()
    if beginning.endswith(MARK):  # of an earlier cut, in the same place
        return beginning
    return _join_units(text, [(0, end)]) if beginning else _only_mark(max_characters)


def fair_share(sizes: Sequence[int], total: int) -> int:
    """Return the largest share so that all sizes, each cut to the share, together have at most ``total``.

    A smaller size leaves its rest to the others (max-min fairness). With room for all, the share is the largest
    size.
    """
    left = total
    for place, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - place)
        if size > share:
            return max(0, share)
        left -= size
    return max(sizes, default=0)


def _only_mark(max_characters: int) -> str:
    return MARK if max_characters >= len(MARK) else ""


def units_of(text: str, room: int, *, is_code: bool, is_manual: bool = False) -> list[Unit]:
    """Return the sentences of a text, or its lines of code, as ranges of at most ``room`` characters without gaps.

    Blank space belongs to the unit before it, indentation to the unit after it. In a manual, whose lines end where
    macros ended, a short line does not end a unit, unless it is the tag of an entry.
    """
    ends = _line_ends(text) if is_code else _sentence_ends(text, is_manual=is_manual)
    units = [unit for unit in pairwise([0, *ends, len(text)]) if unit[0] < unit[1]]
    if all(end - start <= room for start, end in units):
        return units
    return [piece for start, end in units for piece in _divide_unit(text, start, end, room)]


def _line_ends(text: str) -> list[int]:
    return [match.end() for match in _LINE_END.finditer(text)]


def _sentence_ends(text: str, *, is_manual: bool = False) -> list[int]:
    ends = {match.end() for match in _LINE_END.finditer(text) if _line_ends_unit(text, match, is_manual=is_manual)}
    for match in _SENTENCE_END.finditer(text):
        if not _NO_END.search(text, max(0, match.start() - 8), match.start()):
            ends.add(text.rfind("\n", match.start(), match.end()) + 1 or match.end())
    return sorted(ends)


def _line_ends_unit(text: str, line_end: re.Match[str], *, is_manual: bool) -> bool:
    """Tell whether a line end is the end of a paragraph, heading, list item, row or message."""
    at = line_end.start()
    first = text.rfind("\n", 0, at) + 1
    is_short = at - first < WRAP_COLUMN
    if is_short and is_manual and first and text[first].isalnum():
        above = text.rfind("\n", 0, first - 1) + 1
        before = text[above:first].rstrip()
        is_apart = before[-1:] in ".:!?" or before.isupper() or _HEADING_OF_MANUAL.match(text, first)
        is_named = FUNCTION_TERMS.isdisjoint(distinct_terms(text[first:at].partition("(")[0]))
        is_short = bool(is_apart and is_named and _BELOW_TAG.match(text, line_end.end()))
    return (
        line_end.end() - at > 1
        or is_short
        or text[at - 1] in ":;|"
        or (is_manual and _HEADING_OF_MANUAL.match(text, line_end.end()) is not None)
        or _STRUCTURE.match(text, line_end.end()) is not None
    )


def _divide_unit(text: str, start: int, end: int, room: int) -> Iterator[Unit]:
    """Yield the parts of a unit. If it is too long, it is divided at lines, else at sentences, else at words."""
    if end - start <= room:
        yield start, end
        return
    unit = text[start:end]
    for ends in (_line_ends(unit), _sentence_ends(unit)):
        if any(inner < len(unit) for inner in ends):
            for low, high in pairwise([0, *(inner for inner in ends if inner < len(unit)), len(unit)]):
                yield from _divide_unit(text, start + low, start + high, room)
            return
    yield from _windows(text, start, end, max(1, min(WINDOW_CHARACTERS, room)))


def _windows(text: str, start: int, end: int, size: int) -> Iterator[Unit]:
    while end - start > size:
        stop = _word_end(text, start, min(end, start + size))
        if stop >= end:
            break
        yield start, stop
        start = stop
    yield start, end


def _word_end(text: str, start: int, limit: int) -> int:
    """Return a place at or before ``limit`` where the text can be cut between words.

    If the first word is longer than ``limit``, the place is the end of that word.
    """
    piece = text[start:limit]
    words = piece.split()
    if not words or piece[-1].isspace() or text[limit].isspace():
        following = _SPACE.match(text, limit)
        return following.end() if following else limit
    if len(words) > 1:
        return limit - len(words[-1])
    for stop in range(limit, start, -1):
        if _UNSPACED.match(text, stop - 1) and _UNSPACED.match(text, stop):
            return stop
    following = _SPACE.search(text, limit)
    return following.end() if following else len(text)


def _by_relevance(
    text: str, units: Sequence[Unit], query_terms: Sequence[str], room: int, said: Span | None, *, is_code: bool
) -> tuple[list[int], list[int]]:
    """Return the numbers of relevant units, most important first, and the numbers of units without relevance."""
    relevance = _relevance(text, units, frozenset(query_terms) - FUNCTION_TERMS)
    around = [0.0, *relevance, 0.0]
    worth = [own + NEIGHBOUR_SHARE * max(around[place], around[place + 2]) for place, own in enumerate(relevance)]
    if is_code and any(relevance):
        for opener, best in _best_in_block(text, units, relevance).items():
            worth[opener] += BLOCK_SHARE * best
    opening = _opening(text, units, int(room * OPENING_SHARE[is_code]), is_code=is_code)
    far = [0.0] * len(units)
    if said is not None:
        far = [max(ABOVE_SHARE * (said.start - end), start - said.end, -1.0) for start, end in units]
        opening |= {place for place, distance in enumerate(far) if distance < 0}
        below = BELOW_SHARE * max(worth, default=0.0)
        worth = [
            (own + (below if start >= said.end else 0.0)) / (1 + abs(distance) / NEAR_CHARACTERS)
            for own, distance, (start, _) in zip(worth, far, units, strict=True)
        ]
    order = sorted(range(len(units)), key=lambda place: (place not in opening, -worth[place], far[place], place))
    relevant = [place for place in order if place in opening or worth[place] > 0]
    return relevant, order[len(relevant) :]


def terms_of_units(text: str, units: Sequence[Unit], query_terms: frozenset[str]) -> list[frozenset[str]]:
    """Return for each unit the query's terms in it."""
    # A word begins like its stem but for two letters at most ("retri" of "retry", "die" of "dying"): to analyze only
    # what has the letters before them is three times as fast.
    heads = frozenset(term[: max(1, len(term) - 2)] for term in query_terms)
    return [_terms_in(text[start:end], query_terms, heads) for start, end in units]


def _relevance(text: str, units: Sequence[Unit], query_terms: frozenset[str]) -> list[float]:
    if not query_terms:
        return [0.0] * len(units)
    terms_in_units = terms_of_units(text, units, query_terms)
    spread = Counter(term for terms in terms_in_units for term in terms)
    weight = {term: math.log(1 + len(units) / count) for term, count in spread.items()}
    return [math.fsum(weight[term] for term in terms) if terms else 0.0 for terms in terms_in_units]


def _terms_in(unit: str, query_terms: frozenset[str], heads: frozenset[str]) -> frozenset[str]:
    lowered = unit.lower()
    for head in heads:
        if head in lowered:
            return query_terms.intersection(distinct_terms(unit))
    return frozenset()


def _best_in_block(text: str, units: Sequence[Unit], relevance: Sequence[float]) -> dict[int, float]:
    """Return for each line that opens an indented block the best relevance of a line directly inside it."""
    best: dict[int, float] = {}
    openers: list[tuple[int, int]] = []
    for place, (start, end) in enumerate(units):
        line = text[start:end]
        indent = len(line) - len(line.lstrip())
        while openers and openers[-1][0] >= indent:
            openers.pop()
        if openers and relevance[place] > 0:
            opener = openers[-1][1]
            best[opener] = max(best.get(opener, 0.0), relevance[place])
        openers.append((indent, place))
    return best


def _opening(text: str, units: Sequence[Unit], room: int, *, is_code: bool) -> frozenset[int]:
    """Return the indexes of the units that are always kept, if they fit into ``room``.

    In prose this is the first sentence, in code the first line and the signature.
    """
    if not is_code:
        return frozenset({0} if units[0][1] <= room else ())
    return frozenset({0, *_signature(text, units, room)})


def _signature(text: str, units: Sequence[Unit], room: int) -> Iterator[int]:
    """Yield the first line that is not a comment, and the lines up to its closing bracket."""
    lines = [text[start:end] for start, end in units[: ABOVE_LINES + SIGNATURE_LINES]]
    first = next((place for place, line in enumerate(lines) if not _ABOVE_SIGNATURE.match(line)), 0)
    opened = 0
    for place, line in enumerate(lines[first : first + SIGNATURE_LINES], first):
        room -= len(line)
        if room < 0:
            return
        yield place
        opened += sum(map(line.count, "([")) - sum(map(line.count, ")]"))
        if opened <= 0:
            return


def _fitting(
    text: str, units: Sequence[Unit], relevant: Sequence[int], rest: Sequence[int], max_characters: int
) -> list[int]:
    """Choose units that fit with their marks: first ``relevant``, then units of ``rest`` that are next to a chosen one.

    Returns:
        The indexes of the chosen units, in reading order.
    """
    is_chosen = [True, *[False] * len(units), units[-1][1] == len(text)]
    used = MARK_ROOM  # at first everything is one gap
    for number, place in enumerate((*relevant, *rest)):
        gaps = (not is_chosen[place]) + (not is_chosen[place + 2]) - 1
        size = units[place][1] - units[place][0] + gaps * MARK_ROOM
        if used + size <= max_characters and (gaps <= 0 or number < len(relevant)):
            used += size
            is_chosen[place + 1] = True
    return [place for place in range(len(units)) if is_chosen[place + 1]]


def _join_units(text: str, units: Sequence[Unit]) -> str:
    """Return the text of units, with a mark in each gap between them and at a beginning or end that is cut."""
    runs: list[Unit] = []
    for start, end in units:
        if runs and runs[-1][1] == start:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    parts: list[str] = []
    if text[: runs[0][0]].strip():
        parts.append(MARK + _break(text[: runs[0][0]]))
    for place, (start, end) in enumerate(runs):
        following = runs[place + 1][0] if place + 1 < len(runs) else len(text)
        run = text[start:end].rstrip()
        parts.append(run)
        if text[end:following].strip():
            blank = _break(text[start + len(run) : end])
            parts.append(f"{blank}{MARK}")
            parts.append(_break(text[end:following]) if following < len(text) else "")
        elif following < len(text):
            parts.append(_break(text[start + len(run) : following]))
    return "".join(parts)


def _break(blank: str) -> str:
    """Return the separator between a unit and a mark: a line break if the text has one there, else a blank."""
    tail = blank[len(blank.rstrip()) :]
    return "\n" if "\n" in tail else " "
