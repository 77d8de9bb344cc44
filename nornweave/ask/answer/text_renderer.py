"""An answer as text: a section for each source, in the order of the sources' best items.

::

    [CODE — source code]
    ↳ src/payments/handlers.py:42-67 (payments) · handle_payment_error · 2026-01-20
    def handle_payment_error(…

    ---

    [DOCUMENTATION — guides and reference]
    …

Blocks are separated by ``---`` lines: the model's answer if there is one, a section per source, the conflicts,
and the gaps. A source is a domain and has one section, wherever its items are in the ranking. No foreign
text can make such a line (``escaping``), and only ``_header`` makes headers, for whole sections:
foreign text with headers is quoted inside a section, never wrapped or taken apart.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nornweave.ask.answer.escaping import ANSWER, CITED, CONFLICTS, DOUBT, NO_ANSWER, NOT_SEARCHED, one_line, quoted
from nornweave.ask.answer.extract import LONGEST_SENTENCE, as_read
from nornweave.ask.answer.snippet import cut, fair_share
from nornweave.ask.answer.synthesis.citations import citation_key
from nornweave.ask.fuse.answerable import Answerable
from nornweave.ask.fuse.records import Answer, ConflictRecord, ConflictSide, ExtractedSentence, FusedItem, Synthesis
from nornweave.ask.search.exact import ASKS_PLACE
from nornweave.ask.search.records import Citation, CoverageGap
from nornweave.core.types import ChunkId, Domain

NOTHING_FOUND = "No results returned from any source in fusion query."
SEPARATOR = "\n\n---\n\n"
LABELS = {
    Domain.CODE.value: "source code",
    Domain.DOCUMENTATION.value: "guides and reference",
    Domain.CONVERSATIONS.value: "messages and threads",
    Domain.RESEARCH.value: "papers and articles",
}
# What a fusion engine calls itself when it is asked as an agent: no source of anything.
FUSION = "FUSION"
UNNAMED = "OTHER"
# Characters of a section that its items' texts get at least each; what comes after the room is used up is only cited.
TEXT_AT_LEAST = 400
# Less of a text is not worth its citation.
SHOWN_AT_LEAST = 80
# A page is cut by leaving out items, not by cutting sections.
UNCUT_CHARACTERS = 1_000_000
NEAREST = "What comes nearest, in the words of the sources:"
LINE_CHARACTERS = 240
NAME_CHARACTERS = 40
ALSO_IN_SHOWN = 3
_CERTAIN = Answerable()

_NO_NAME = re.compile(r"[^\w .-]+|_{3,}|-{3,}")


@dataclass(frozen=True, slots=True)
class _Piece:
    """One item as text: its citation line, its content, and its place for a list that shows no contents."""

    citation: str
    text: str
    place: str
    is_code: bool

    def __len__(self) -> int:
        return len(self.citation) + 1 + len(self.text)

    def __str__(self) -> str:
        return f"{self.citation}\n{self.text}" if self.text else self.citation


def render_answer(answer: Answer, max_chars_per_source: int) -> str:
    """Render an answer as text. If there are several sources, each section has at most ``max_chars_per_source``."""
    return render_text(
        answer.items,
        conflicts=answer.conflicts,
        coverage_gaps=answer.recalled.coverage_gaps,
        synthesis=answer.synthesis,
        answerable=answer.answerable,
        max_chars_per_source=max_chars_per_source,
    )


def render_text(
    items: Sequence[FusedItem],
    *,
    conflicts: Sequence[ConflictRecord] = (),
    coverage_gaps: Sequence[CoverageGap] = (),
    synthesis: Synthesis | None = None,
    answerable: Answerable = _CERTAIN,
    max_chars_per_source: int = 1500,
) -> str:
    """Render an answer as text.

    Args:
        items: in their final order; an item that was found twice is shown once, at its first place.
        conflicts: the list into which ``FusedItem.conflict`` is an index; each conflict is shown with both sides, and
            why one side holds, or that none does.
        synthesis: a model's text about the items; it comes first.
        answerable: why the items may not answer, or what else a reader should know; it comes before them.
        max_chars_per_source: the limit for a section below its header, ≥ 100, if there are several sources;
            cuts are marked, and items left out are still cited as far as there is room. A single source is shown
            whole, without a header.
    """
    sections = _sections(items)
    cited = synthesis is not None and synthesis.text is not None
    pieces = {
        source: [_piece(item, len(conflicts), with_key=cited) for item in section]
        for source, section in sections.items()
    }
    blocks = [
        _answer(synthesis),
        _note(answerable) if items else "",
        *_rendered_sections(pieces, max_chars_per_source),
        "" if items else NOTHING_FOUND,
        _conflicts(conflicts, items),
        _gaps(coverage_gaps, synthesis),
    ]
    return SEPARATOR.join(block for block in blocks if block)


def _note(answerable: Answerable) -> str:
    words = one_line(answerable.words, 2 * LINE_CHARACTERS)
    return f"{DOUBT} {words}" if answerable.doubt else words


def render_lead(answer: Answer, numbers: Mapping[ChunkId, int]) -> str:
    """Render the beginning of an answer for a reader with little room: doubts, and the sentences that answer.

    Args:
        numbers: chunk → the number of its item.
    """
    items = {item.chunk_id: item for item in answer.items}
    asks_place = ASKS_PLACE.search(answer.question.text) is not None
    said = [
        f"“{one_line(as_read(each.text, is_code=items[each.chunk_id].domain == Domain.CODE), LONGEST_SENTENCE)}”"
        f"{_defined_at(items[each.chunk_id], each) if asks_place else ''} [{numbers[each.chunk_id]}]"
        for each in answer.extract
    ]
    judged = answer.answerable
    words = one_line(judged.words, 2 * LINE_CHARACTERS)
    is_nothing = judged.is_doubtful and not judged.may_answer
    lines = [f"{DOUBT} {words}" if is_nothing else words, NEAREST if judged.may_answer and said else ""]
    return "\n".join([line for line in lines if line and answer.items] + said)


def _defined_at(item: FusedItem, sentence: ExtractedSentence) -> str:
    """Return the full name of what a quoted line of code is part of, and the line; empty for other passages.

    A line of code does not name its class: ``def roll(self):`` of ``LogFile``.
    """
    place, metadata = item.citation, item.item.metadata
    if item.domain != Domain.CODE or not (place.title and place.line_range):
        return ""
    if not (metadata.get("function_name") or metadata.get("class_name")):
        return ""
    line = place.line_range[0] + item.item.content.count("\n", 0, sentence.span.start)
    return f" ({one_line(place.title, LINE_CHARACTERS)}, {one_line(f'{place.source_path}:{line}', LINE_CHARACTERS)})"


def render_numbered(
    items: Sequence[FusedItem],
    numbers: Mapping[ChunkId, int],
    *,
    conflicts: Sequence[ConflictRecord] = (),
    coverage_gaps: Sequence[CoverageGap] = (),
    also: Sequence[FusedItem] = (),
) -> str:
    """Render the part of an answer below its lead: conflicts, a section of items per source, further places, gaps.

    Args:
        also: items of which only the places are shown.
    """
    pieces = {
        source: [_piece(item, len(conflicts), number=numbers[item.chunk_id]) for item in section]
        for source, section in _sections(items).items()
    }
    blocks = [
        _conflicts(conflicts, items),
        *_rendered_sections(pieces, UNCUT_CHARACTERS),
        _also([_piece(item, 0) for item in also], UNCUT_CHARACTERS),
        "" if items else NOTHING_FOUND,
        _gaps(coverage_gaps, None),
    ]
    return SEPARATOR.join(block for block in blocks if block)


def _rendered_sections(pieces: dict[str, list[_Piece]], limit: int) -> Iterator[str]:
    if len(pieces) == 1:
        yield from ("\n\n".join(map(str, section)) for section in pieces.values())
        return
    for source, section in pieces.items():
        yield f"{_header(source)}\n{_body(section, limit)}"


def _header(source: str) -> str:
    """Return the header of a source's section. No other function makes headers."""
    label = LABELS.get(source.lower()) or re.sub(r"[\s_-]+", " ", source.lower()).strip()
    return f"[{source} — {label}]"


def _sections(items: Sequence[FusedItem]) -> dict[str, list[FusedItem]]:
    """Return source → its items, in the order of their first items. Items that are the same are included once."""
    sections: dict[str, list[FusedItem]] = {}
    for item in items:
        section = sections.setdefault(_source(item), [])
        if not any(_is_same(item, shown) for shown in section):
            section.append(item)
    return sections


def _source(item: FusedItem) -> str:
    """Return the name of an item's source: its domain or, for an item of a nested fusion, its original domain."""
    for domain in (item.domain, item.citation.domain_id):
        plain = _NO_NAME.sub(" ", unicodedata.normalize("NFKC", domain).upper())
        name = " ".join(plain.split())[:NAME_CHARACTERS].strip()
        if name and name != FUSION:
            return name
    return UNNAMED


def _is_same(item: FusedItem, shown: FusedItem) -> bool:
    """Tell whether two items are the same: the same chunk, or parts of one section with the same title line."""
    first, second = item.item, shown.item
    if first.chunk_id == second.chunk_id:
        return True
    return (
        _document(first.citation) == _document(second.citation)
        and _overlap(first.citation.char_range, second.citation.char_range)
        and _title_line(first.content) == _title_line(second.content)
    )


def _document(citation: Citation) -> tuple[str, str, str | None]:
    # The rest of the address says which lines.
    return citation.source_id, citation.source_path, citation.url and citation.url.partition("#")[0]


def _overlap(first: tuple[int, int], second: tuple[int, int]) -> bool:
    unknown = first[0] >= first[1] or second[0] >= second[1]
    return unknown or (first[0] < second[1] and second[0] < first[1])


def _title_line(content: str) -> str:
    return content.strip().partition("\n")[0].strip()


def _piece(item: FusedItem, conflicts: int, *, with_key: bool = False, number: int | None = None) -> _Piece:
    place = _place(item.citation, item.chunk_id)
    details = [place if number is None else f"[{number}] {place}", *_details(item, conflicts)]
    if with_key:
        details.append(f"[{citation_key(item.domain, item.chunk_id)}]")
    return _Piece(
        citation=f"{CITED} {' · '.join(details)}",
        text=quoted(item.content),
        place=place,
        is_code=item.domain == Domain.CODE,
    )


def _place(citation: Citation, otherwise: str = "") -> str:
    """Return an item's place and source (``a.md:3-7 (docs)``); ``otherwise`` replaces a missing path, URL and title."""
    path = one_line(citation.source_path or citation.url or citation.title or otherwise, LINE_CHARACTERS)
    if citation.line_range:
        path += f":{citation.line_range[0]}-{citation.line_range[1]}"
    elif citation.page is not None:
        path += f" p. {citation.page}"
    return f"{path} ({one_line(citation.source_id, NAME_CHARACTERS)})" if citation.source_id else path


def _details(item: FusedItem, conflicts: int) -> Iterator[str]:
    citation, metadata = item.citation, item.item.metadata
    channel = metadata.get("channel")
    if isinstance(channel, str) and channel.strip():
        yield f"#{one_line(channel, NAME_CHARACTERS).lstrip('#')}"
    if citation.section or citation.title:
        yield one_line(citation.section or citation.title or "", LINE_CHARACTERS // 2)
    if citation.timestamp:
        yield citation.timestamp.date().isoformat()
    if citation.url and citation.source_path:
        yield one_line(citation.url, LINE_CHARACTERS)
    if citation.stale:
        yield "stale: a newer version could not be read"
    if item.conflict is not None and item.conflict < conflicts:
        yield f"{'loses ' if item.demoted else ''}conflict {item.conflict + 1}"
    if item.shortened:
        yield "shortened"
    also = dict.fromkeys(map(_place, item.corroborated_by))
    if also:
        yield f"also in {', '.join([*also][:ALSO_IN_SHOWN])}{' …' if len(also) > ALSO_IN_SHOWN else ''}"
    if item.item.folded:
        yield behind(item.item.folded)


def behind(folded: Sequence[Citation]) -> str:
    """Return a text about the items folded behind one: ``and 3 like it: docs/v1/a.md, docs/v2/a.md``."""
    paths = [*dict.fromkeys(one_line(each.source_path, LINE_CHARACTERS) for each in folded)]
    return f"and {len(folded)} like it: {', '.join(paths[:ALSO_IN_SHOWN])}{' …' if len(paths) > ALSO_IN_SHOWN else ''}"


def _body(pieces: Sequence[_Piece], limit: int) -> str:
    """Render the items of one section. Long texts are cut to fair shares; the last items may be only cited.

    Returns:
        At most ``limit`` characters.
    """
    whole = "\n\n".join(map(str, pieces))
    if len(whole) <= limit:
        return whole
    shown: list[str] = []
    left = limit
    for place, piece in enumerate(pieces):
        rest = _also(pieces[place + 1 :], limit // 4)
        share = max(fair_share([len(later) + 2 for later in pieces[place:]], left), TEXT_AT_LEAST)
        part = _part(piece, min(share, left - len(rest) - (2 if rest else 0)), limit)
        if part is None:
            shown.append(_also(pieces[place:], left))
            break
        shown.append(part)
        left -= len(part) + 2
    return "\n\n".join(filter(None, shown))


def _part(piece: _Piece, room: int, limit: int) -> str | None:
    citation = one_line(piece.citation, max(limit // 3, NAME_CHARACTERS))
    left = room - len(citation) - 1
    if len(piece.text) > left and left < min(SHOWN_AT_LEAST, limit // 4):
        return None
    return f"{citation}\n{cut(piece.text, left, is_code=piece.is_code)}".rstrip()


def _also(pieces: Sequence[_Piece], room: int) -> str:
    """Return a line such as ``also: a.md; b.md; 3 more`` for items that are not shown; empty if it does not fit."""
    line, best = f"{CITED} also:", ""
    for named, piece in enumerate(pieces):
        counted = f"{line} {len(pieces) - named} more"
        if len(counted) > room:
            return best
        best = counted
        line += f" {piece.place};"
    return line.removesuffix(";") if pieces and len(line) <= room + 1 else best


def _answer(synthesis: Synthesis | None) -> str:
    if synthesis is None or synthesis.text is None:
        return ""
    model = f"; {one_line(synthesis.model, NAME_CHARACTERS)}" if synthesis.model else ""
    return f"{ANSWER} (written by a model from the items below{model}):\n{quoted(synthesis.text)}"


def _conflicts(conflicts: Sequence[ConflictRecord], items: Sequence[FusedItem]) -> str:
    if not conflicts:
        return ""
    contents = {item.chunk_id: item.item.content for item in items}
    lines = [CONFLICTS]
    for number, conflict in enumerate(conflicts, 1):
        lines.append(f"{number}. {one_line(conflict.explanation, 2 * LINE_CHARACTERS)}")
        lines += [f"   {_side(side, contents.get(side.chunk_id, ''))}" for side in conflict.sides]
        resolved = "because" if conflict.resolved_to else "unresolved"
        lines.append(f"   {resolved}: {one_line(conflict.reason, LINE_CHARACTERS)} ({conflict.resolution.value})")
    return "\n".join(lines)


def _side(side: ConflictSide, content: str) -> str:
    dated = f", {side.citation.timestamp.date().isoformat()}" if side.citation.timestamp else ""
    said = one_line(side.fact.statement if side.fact else content, LINE_CHARACTERS)
    quote = f": “{said}”" if said else ""
    domain = one_line(side.citation.domain_id, NAME_CHARACTERS)
    return f"{side.role}: {domain}, {_place(side.citation)}{dated}{quote}"


def _gaps(gaps: Sequence[CoverageGap], synthesis: Synthesis | None) -> str:
    lines = [
        f"{NOT_SEARCHED} {one_line(gap.name, 2 * NAME_CHARACTERS)}: {one_line(gap.reason, LINE_CHARACTERS)}"
        for gap in gaps
    ]
    if synthesis is not None and synthesis.text is None:
        lines.append(f"{NO_ANSWER} {one_line(synthesis.reason or 'no reason is known', LINE_CHARACTERS)}")
    return "\n".join(dict.fromkeys(lines))
