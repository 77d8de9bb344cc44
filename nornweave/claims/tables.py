"""Tables → claims: what stands where a row and a column meet.

Three kinds are read: options with a column of defaults, things with a column of owners, and limits: rows and columns
that name an attribute, cells that hold a number. Of other tables (results, comparisons, lists of events) nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nornweave.claims import phrases, quantities, relations
from nornweave.claims.grids import Cell, Grid, grids
from nornweave.claims.moods import mood_of
from nornweave.claims.named import Named, claim_of
from nornweave.claims.passage import Passage
from nornweave.claims.quantities import Quantity
from nornweave.claims.sentences import Sentence
from nornweave.claims.statuses import STATUS_CODES
from nornweave.claims.values import canonical_number
from nornweave.claims.vocabulary import attribute_of, family_stems, split_name, stem, unit_in_name
from nornweave.types import Claim, ClaimKind, Span

MAX_STATEMENT = 240

_DEFAULT = re.compile(r"defaults?(?: values?| settings?)?", re.IGNORECASE)
_VALUE = re.compile(r"(?:current |our |production |set )?(?:values?|settings?|set to)", re.IGNORECASE)
_SETTING = re.compile(
    r"(?:configuration |config |environment )?(?:parameters?|settings?|options?|variables?|keys?|names?"
    r"|propert(?:y|ies)|flags?|fields?|arguments?|constants?)",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"-{0,2}[A-Za-z]\w*(?:[_.-]\w+)+")
_OWNER = re.compile(
    r"owners?|owned by|owning team|maintainers?|maintained by|responsible(?: team)?|code owners?", re.IGNORECASE
)
_TEAM = re.compile(r"teams?", re.IGNORECASE)
_OWNED = re.compile(
    r"services?|components?|systems?|modules?|repositor(?:y|ies)|repos?|packages?|librar(?:y|ies)|areas?"
    r"|applications?|apis?",
    re.IGNORECASE,
)
_STATUS = re.compile(r"(?:http )?(?:status|response)(?: codes?)?|http codes?", re.IGNORECASE)
_LIMITS = re.compile(r"\b(?:limits?|quotas?|maximum|max|constraints?|restrictions?|thresholds?)\b", re.IGNORECASE)
_PLAIN_COLUMN = re.compile(
    r"(?:values?|limits?|quotas?|max(?:imum)?(?: values?)?|amounts?|settings?|defaults?(?: (?:values?|limits?"
    r"|quotas?))?|service quotas?|hard limits?)",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"types?|required|description|meaning|notes?|comments?|examples?|adjustable|remarks?|details?|see|units?|"
    r"(?:what|when|how|why|where|who|if)\b.*|.*\?$",
    re.IGNORECASE,
)
_CELL = re.compile(
    r"[`\"]?(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,15}(?:\.\d{1,9})?[kKM]?)[`\"]?(?:\s?"
    r"(?P<unit>[A-Za-zµ%€$][A-Za-z/% -]{0,40}?))?[.*†]?"
)
_RESULTS = re.compile(
    r"\b(?:results?|benchmarks?|measured|figures?|experiments?|evaluation|accuracy|recall|precision|mrr|score|p50"
    r"|p95|median|average|speed|peak|performance|measurements?|mean|sd|std|variance|correlation)\b",
    re.IGNORECASE,
)


def table_claims(passage: Passage) -> Iterator[Claim]:
    """Return what the tables of a passage claim, row by row.

    A claim's topics are those of its row, its column and its heading; its span is the row.
    """
    text = passage.text
    if "|" not in text and "==" not in text and "<t" not in text:
        return
    for grid in grids(text):
        heading = _heading_above(text, grid.above)
        if len(grid.header) > 1 and not _RESULTS.search(f"{heading} {' '.join(grid.header)}"):
            yield from _claims_of(grid, passage, heading)


def _heading_above(text: str, offset: int) -> str:
    found = re.findall(r"^#{1,6}\s+(.{1,200}?)\s*#*$|<h[1-6][^<>]*>([^<>]{1,200})</h", text[:offset], re.MULTILINE)
    return (found[-1][0] or found[-1][1]) if found else ""


def _claims_of(grid: Grid, passage: Passage, heading: str) -> Iterator[Claim]:
    for row in grid.rows:
        label = row[0].text.strip("` ") if row else ""
        if not label or len(row) < 2:
            continue
        for header, cell in zip(grid.header[1:], row[1:], strict=False):
            claim = _cell_claim(passage, heading, (grid.header[0], label), header.strip("` *"), cell, row)
            if claim is not None:
                yield claim


def _cell_claim(
    passage: Passage, heading: str, first: tuple[str, str], header: str, cell: Cell, row: Sequence[Cell]
) -> Claim | None:
    """Read one cell.

    Args:
        first: header and text of the row's first cell.
    """
    if not cell.text or not header:
        return None
    label = first[1]
    if _DEFAULT.fullmatch(header) or (
        _VALUE.fullmatch(header) and _SETTING.fullmatch(first[0].strip("` *")) and _IDENTIFIER.fullmatch(label)
    ):
        return _default(passage, heading, label, cell, row)
    if _OWNER.fullmatch(header) or (_TEAM.fullmatch(header) and _OWNED.fullmatch(first[0])):
        owner = relations.owner_name(cell.text)
        return _claim(passage, heading, "owner", "owner", owner, None, (label,), row) if owner else None
    if _STATUS.fullmatch(header) and cell.text.strip("`") in STATUS_CODES and not label.isdigit():
        return _claim(passage, heading, "http_status", "http_status", cell.text.strip("`"), None, (label,), row)
    return None if _TALK.fullmatch(header) else _limit(passage, heading, first, header, cell, row)


def _default(passage: Passage, heading: str, label: str, cell: Cell, row: Sequence[Cell]) -> Claim | None:
    name = re.split(r"[\s(,/]", label, maxsplit=1)[0] if "`" in row[0].text or "_" in label else label
    named = Named(
        name=name.lstrip("-"),
        value=cell.text.strip("`* "),
        span=_span(row),
        around=(heading,) if heading else (),
        configured=True,
    )
    claim = claim_of(named, passage)
    if claim is None:
        return None
    whole = Span(passage.start + row[0].start, passage.start + row[-1].end)
    mood = mood_of("", passage, heading=heading)
    return replace(claim, span=whole, statement=_statement(passage, row), mood=mood)


def _limit(
    passage: Passage, heading: str, first: tuple[str, str], header: str, cell: Cell, row: Sequence[Cell]
) -> Claim | None:
    found = _CELL.fullmatch(cell.text)
    if found is None:
        return None
    label = first[1]
    plain = bool(_PLAIN_COLUMN.fullmatch(header))
    named_unit = unit_in_name(split_name(label)) or unit_in_name(split_name(header))
    canonical = canonical_number(found["number"], found["unit"] or named_unit)
    if canonical is None:
        return None
    noun = found["unit"] or "" if quantities.dimension(canonical[1]) == "count" else ""
    quantity = Quantity(0, 0, *canonical, noun=noun)
    attribute = _attribute(
        quantity, (label, "" if plain else header), f"{heading or passage.section or ''} {first[0]} {header}"
    )
    if attribute is None:
        return None
    unit = canonical[1] if quantities.dimension(canonical[1]) != "count" or attribute in quantities.WEAK else None
    about = (f"{'' if plain else header} {label}",)
    return _claim(passage, heading, "number", attribute, canonical[0], unit, about, row)


def _attribute(quantity: Quantity, names: tuple[str, str], around: str) -> str | None:
    """Name what a cell is the value of: a family that its row or column names, or a limit."""
    for name in names:
        family = attribute_of(split_name(name)) if name else None
        if family and family not in quantities.WEAK and quantities.fits(family, quantity):
            return family
    return "limit" if _LIMITS.search(around) else None


def _claim(
    passage: Passage,
    heading: str,
    kind: ClaimKind,
    attribute: str,
    value: str,
    unit: str | None,
    about: tuple[str, ...],
    row: Sequence[Cell],
) -> Claim | None:
    place = Sentence(" ".join(about), row[0].start, row[-1].end, heading)
    headings = phrases.headings_of(passage, place)
    entity = _numbered(row[0].text, attribute) or phrases.entity_of((*about, *headings), attribute)
    if not entity:
        return None
    return Claim(
        kind=kind,
        entity=entity,
        attribute=attribute,
        value=value,
        unit=unit,
        span=Span(passage.start + place.start, passage.start + place.end),
        statement=_statement(passage, row),
        topics=phrases.topics((*about, *headings, phrases.stem_of_file(passage)), attribute),
        mood=mood_of(" ".join(about), passage, heading=heading),
    )


def _numbered(label: str, attribute: str) -> str:
    """Return what a label with a number in it names: numbers tell ``t3.small`` from ``t2.small``."""
    stems = family_stems(attribute)
    words = [word for word in split_name(label) if stem(word) not in stems]
    return " ".join(words[:6]) if re.search(r"\d", label) and any(word.isalpha() for word in words) else ""


def _span(row: Sequence[Cell]) -> Span:
    return Span(row[0].start, row[-1].end)


def _statement(passage: Passage, row: Sequence[Cell]) -> str:
    raw = re.sub(r"<[^<>]{1,200}>", " ", passage.text[row[0].start : row[-1].end])
    return " ".join(raw.split())[:MAX_STATEMENT].rstrip()
