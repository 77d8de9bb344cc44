"""An answer for the ask page: results, the searched domains, conflicts as columns; and the ledger's conflicts.

A model's text is shown as markup. Its citations are links with the numbers of their passages.

The excerpt of a passage in a list of results is the part with the most words of the question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any

from api.pages.addresses import CitedPlace, conflict_address, passage_address, place_of
from api.pages.catalogue import DomainChoice, facets_of
from api.pages.markup import MARKUP, Block, MessageView, blocks_of, colours_of, messages_of, sentence_runs
from api.pages.question_form import QuestionForm
from api.pages.text_runs import CITE, HIT, TextRun, highlighted, marked_code, query_terms_of, runs_of, window
from nornweave.ask.answer.extract import as_read
from nornweave.ask.answer.synthesis.citations import citation_key
from nornweave.ask.fuse.records import Synthesis
from nornweave.ask.search.combine import EXACT
from nornweave.ask.search.late_interaction import LATE
from nornweave.ask.views.answer import (
    ConflictDocument,
    ExtractDocument,
    FusedItemDocument,
    FusionResult,
    MergeDocument,
    SideDocument,
)
from nornweave.ask.views.items import CoverageDocument
from nornweave.ask.views.ledger import LedgerDocument, LedgerEntryDocument, LedgerSideDocument
from nornweave.core.text.terminal import counted, lines_of
from nornweave.disagree.conflicts import DEMOTE_FROM

MAX_ENTRIES = 200
_ROLES = {"holds": "probably holds", "agrees": "agrees with it"}


def conflict_of(
    number: int, conflict: ConflictDocument, places: Mapping[str, CitedPlace], terms: Collection[str]
) -> dict[str, Any]:
    """Return a conflict of an answer for the page. ``number`` counts from 1; ``places`` are by chunk."""
    settled = conflict["resolved_to"] is not None
    return {
        **conflict,
        "number": number,
        "subject": _subject(conflict["entity"], conflict["attribute"]),
        "sides": [_side(side, side["role"], places.get(side["chunk_id"]), terms) for side in conflict["claims"]],
        "verdict": f"{_holder(conflict)} probably holds." if settled else "",
        "reason": conflict["reason"] if settled else sentence(conflict["reason"]),
        "certainty": _certainty(conflict["confidence"]),
    }


def ledger_view(ledger: LedgerDocument) -> dict[str, Any]:
    """Return the ledger for the page: ``MAX_ENTRIES`` of each list, and the number of the others."""
    lists = {"open": ledger["open"], "settled": ledger["settled"], "dismissed": ledger["dismissed"]}
    return {
        "ledger": ledger,
        **{name: [entry_of(entry) for entry in each[:MAX_ENTRIES]] for name, each in lists.items()},
        "hidden": sum(max(0, len(each) - MAX_ENTRIES) for each in lists.values()),
    }


def entry_of(entry: LedgerEntryDocument) -> dict[str, Any]:
    """Return an entry of the ledger for the page. If the ledger suggests a side, the first side is said to hold."""
    roles = ("holds" if entry["suggested"] else "says", *["says"] * len(entry["sides"]))
    return {
        **entry,
        "href": conflict_address(entry["entry_id"]),
        "subject": _subject(entry["entity"], entry["attribute"]) or "(no name)",
        "sides": [_side(side, role) for side, role in zip(entry["sides"], roles, strict=False)],
        "also": [place_of(side, side["chunk_id"]) for side in entry["also"]],
        "reason": sentence(entry["reason"]),
        "certainty": _certainty(entry["confidence"]),
    }


def _holder(conflict: ConflictDocument) -> str:
    """Return the domain whose side of a conflict holds."""
    sides = (side["domain_id"] for side in conflict["claims"] if side["chunk_id"] == conflict["resolved_to"])
    return next(sides, "one side").capitalize()


def _side(
    side: SideDocument | LedgerSideDocument, role: str, place: CitedPlace | None = None, terms: Collection[str] = ()
) -> dict[str, Any]:
    """Return one side for the page: its statement, value, place and date. ``role`` is ``holds`` or ``says``."""
    return {
        **side,
        "role": _ROLES.get(role, role),
        "holds": role in _ROLES,
        "place": place or place_of(side, side["chunk_id"]),
        "value": side["written"] or "",
        "statement": stated(side["statement"] or "", terms, is_code=side["domain_id"] == "code"),
    }


def stated(text: str, terms: Collection[str], *, is_code: bool) -> tuple[TextRun, ...]:
    """Return a quotation with the words of a question marked. The markup of a quotation that is not code is removed."""
    return highlighted(as_read(text, is_code=True), terms) if is_code else sentence_runs(text, terms)


def sentence(text: str) -> str:
    """Return a reason with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def _subject(entity: str, attribute: str) -> str:
    """Return the subject of a conflict: entity and attribute."""
    return " · ".join(filter(None, (entity, attribute.replace("_", " "))))


def _certainty(confidence: float) -> str:
    """Return how sure a conflict is, in words: ``probably`` if its confidence is enough to demote a side."""
    return f"{'probably' if confidence >= DEMOTE_FROM else 'may'} disagree · confidence {confidence:.2f}"


RETRIEVERS = {
    "dense": "meaning",
    "sparse": "words",
    "fulltext": "word pairs",
    "structured": "names",
    "exact": "exact name or words",
    LATE: "word by word",
}
STATES = {
    "ok": "found",
    "empty": "found nothing",
    "timeout": "late",
    "failed": "failed",
    "off": "off",
}

# What fits a screen beside nine others.
MAX_LINES = 9
MAX_PARAGRAPHS = 5
MAX_CHARACTERS = 600
# What stands before the first match of a paragraph that is cut.
_BEFORE_MATCH = 120
# A line as short as this ends where its author wanted it to.
_WRAPPED = 50
# What begins a paragraph of its own in plain text.
_BEGINS = re.compile(r"[-*+•]\s|\d+[.)]\s")


def coverage_of(document: FusionResult, catalogue: Sequence[DomainChoice]) -> list[dict[str, Any]]:
    """Return how each domain was searched, with domains that were left out. ``summary`` is a short text.

    The states are ``found``, ``empty``, ``late``, ``unpublished``, ``failed`` and ``left out``.
    """
    shown = Counter(item["citation"]["domain_id"] for item in document["items"])
    domains = dict.fromkeys([*(choice.domain for choice in catalogue), *document["coverage"]])
    return [{"domain": name, **_searched(document["coverage"].get(name), shown[name])} for name in domains]


def not_searched(document: FusionResult, missing: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return the reasons why domains or remote agents gave no answer, each with its domains."""
    silent = [
        (gap["domain_id"], f"agent {gap['agent_id']}: {gap['reason']}")
        for gap in document["coverage_gaps"]
        if gap.get("elsewhere")
    ]
    named = {domain for domain, _ in silent}
    reasons: dict[str, list[str]] = {}
    for domain, reason in [(one["domain"], one["summary"]) for one in missing if one["domain"] not in named] + silent:
        reasons.setdefault(reason, []).append(domain)
    return [*reasons.items()]


def _searched(coverage: CoverageDocument | None, shown: int) -> Mapping[str, Any]:
    if coverage is None:
        return {"state": "left out", "summary": "not asked"}
    if not coverage["searched"]:
        reason = coverage.get("reason", "gave no answer")
        return {"state": _why_not(reason), "summary": reason}
    states, total = coverage.get("retrieval", {}), coverage.get("total_searched", 0)
    found = f"{counted(shown, 'passage')} of {total:,} shown" if "ok" in states.values() else ""
    return {
        **coverage,
        "state": "found" if found else "empty",
        "summary": found or f"nothing in {counted(total, 'passage')}",
        "retrievers": [(RETRIEVERS.get(name, name), state, STATES.get(state, state)) for name, state in states.items()],
    }


def _why_not(reason: str) -> str:
    """Return the state for the reason of a gap: late, unpublished or failed."""
    if "timeout" in reason or "in time" in reason:
        return "late"
    return "unpublished" if "published" in reason else "failed"


def summary_of(document: FusionResult, searched: int, asked: int) -> str:
    """Return a line about the whole answer: conflicts, domains, duplicates, time."""
    domains = f"{searched} of {asked} domains searched" if searched != asked else f"{counted(asked, 'domain')} searched"
    parts = [domains, f"{round(document['total_latency_ms'])} ms"]
    if document["duplicates_removed"]:
        parts.insert(1, f"{counted(document['duplicates_removed'], 'duplicate')} merged")
    if document["conflicts"]:
        parts.insert(0, counted(len(document["conflicts"]), "conflict"))
    return " · ".join(parts)


def nothing_found(document: FusionResult, missing: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence that explains an empty answer. ``missing`` are the domains that were not searched."""
    if missing and len(missing) == len(document["coverage"]):
        return "No domain was searched, so this says nothing about what is known."
    if missing:
        names = ", ".join(one["domain"] for one in missing)
        return f"The domains that were searched have nothing. {names}: not searched, the answer may be there."
    total = sum(one.get("total_searched", 0) for one in document["coverage"].values())
    return f"Every domain that was asked was searched, {counted(total, 'passage')} in all. None matches."


_NOTES = {
    EXACT: "defines what is named, or holds the words side by side",
    LATE: "how near each word of the question comes",
}
_SIGNALS = {
    "score": "of all that, weighed against the other signals",
    "corroboration": "others say the same",
    "recency": "how recent it is",
    "domain": "the question is about this domain",
    "length": "long enough to say something",
}
_MERGES = {
    "same_chunk": "the same passage",
    "same_text": "the same text",
    "contained": "contained in this one",
    "same_meaning": "the same in other words",
}
CLEAR_GAP = 0.2
"""Of the best score: a gap that is wider parts results from what is only near to the question."""


def answer_view(document: FusionResult, catalogue: Sequence[DomainChoice], form: QuestionForm) -> dict[str, Any]:
    """Return an answer for the page.

    ``tail`` are results below a clear gap: they are folded and have no excerpts. ``is_unsure`` says that the sentences
    are only the nearest ones. ``not_searched`` are reasons, each with its domains and agents.
    """
    sentences = document["extract"] or document["nearest"]
    terms = query_terms_of(document["query"])
    places = {item["chunk_id"]: place_of(item["citation"], item["chunk_id"]) for item in document["items"]}
    merges = document.get("merged", [])
    shown = _count_unfolded(document["items"], {sentence["chunk_id"] for sentence in sentences})
    results = [
        _result(number, item, terms, places[item["chunk_id"]], merges, is_folded=number > shown)
        for number, item in enumerate(document["items"], 1)
    ]
    coverage = coverage_of(document, catalogue)
    missing = [one for one in coverage if one["state"] in {"late", "unpublished", "failed"}]
    asked = [one for one in coverage if one["state"] != "left out"]
    return {
        "query_id": document["query_id"],
        "extract": _extract(sentences, results, terms),
        "is_unsure": not document["extract"],
        "doubt": document["answerable"]["words"] if results else "",
        "results": results[:shown],
        "tail": results[shown:],
        "conflicts": [
            conflict_of(number, conflict, places, terms) for number, conflict in enumerate(document["conflicts"], 1)
        ],
        "facets": facets_of(document["items"], catalogue, form),
        "coverage": coverage,
        "headline": counted(len(results), "passage") if results else "Nothing found",
        "summary": summary_of(document, len(asked) - len(missing), len(asked)),
        "nothing": "" if results else nothing_found(document, missing),
        "not_searched": not_searched(document, missing),
    }


def _count_unfolded(items: Sequence[FusedItemDocument], quoted: Collection[str]) -> int:
    """Count the results that are not folded: those before a clear gap, and those that are quoted."""
    last_quoted = max((number for number, item in enumerate(items, 1) if item["chunk_id"] in quoted), default=0)
    return max(last_quoted, before_gap([item["score"]["value"] for item in items]))


def _extract(
    sentences: Sequence[ExtractDocument], results: Sequence[Mapping[str, Any]], terms: Collection[str]
) -> list[dict[str, Any]]:
    """Return the sentences that answer the question, each with its result."""
    by_chunk = {result["chunk_id"]: result for result in reversed(results)}
    quoted = []
    for sentence in sentences:
        if result := by_chunk.get(sentence["chunk_id"]):
            fences = result["content"].count("```", 0, sentence["char_range"][0])
            is_code = result["is_code"] or fences % 2 == 1
            runs = stated(sentence["text"], terms, is_code=is_code)
            quoted.append({"result": result, "is_code": is_code, "runs": runs})
    return quoted


def before_gap(scores: Sequence[float]) -> int:
    """Count the results before the widest gap between scores. If no gap is clear, count all."""
    gaps = [high - low for high, low in pairwise(scores)]
    widest = max(range(len(gaps)), key=lambda place: gaps[place], default=0)
    return widest + 1 if gaps and gaps[widest] > CLEAR_GAP * max(scores[0], 0.0) > 0 else len(scores)


def _result(
    number: int,
    item: FusedItemDocument,
    terms: Collection[str],
    place: CitedPlace,
    merges: Sequence[MergeDocument],
    *,
    is_folded: bool,
) -> dict[str, Any]:
    """Return a passage for the page, as result ``number`` (from 1). With ``is_folded``, leave out its text.

    ``steps`` explain its rank: each retriever, its rank and its part of the score. ``merges`` are those of the answer.
    """
    citation = item["citation"]
    title = citation["title"] or citation["source_path"].rpartition("/")[2]
    excerpt, messages = (Excerpt(), ()) if is_folded else _shown_text(item, title, terms)
    return {
        **item,
        "number": number,
        "href": passage_address(item["chunk_id"]),
        "title": runs_of(title),
        "place": place,
        "is_code": citation["domain_id"] == "code",
        "excerpt": excerpt,
        "messages": messages,
        "steps": _steps(item),
        "corroborated_by": [place_of(cited) for cited in item["corroborated_by"]],
        "folded": [place_of(cited) for cited in item.get("folded", ())],
        "merged": [_merged(merge) for merge in merges if merge["kept"] == item["chunk_id"]],
    }


def _shown_text(item: FusedItemDocument, title: str, terms: Collection[str]) -> tuple[Excerpt, tuple[MessageView, ...]]:
    """Return the text of a passage for the page: an excerpt of code, markup or plain text, or messages."""
    citation, text, lines = item["citation"], item["content"], item["citation"]["line_range"]
    if citation["domain_id"] == "code":
        first = lines[0] if lines and not item["shortened"] else None
        return code_excerpt(text, terms, first, str(item["metadata"].get("language") or "")), ()
    if citation["message_ids"]:
        return Excerpt(), messages_of(text, terms, ids=citation["message_ids"])
    kind = str(item["metadata"].get("format") or item["metadata"].get("source_type") or "")
    if kind in MARKUP:
        return markup_excerpt(text, terms, title=title, format=kind), ()
    return prose_excerpt(text, terms, title=title), ()


def _merged(merge: MergeDocument) -> tuple[str, str]:
    words = f"{_MERGES.get(merge['reason'], merge['reason'])}, {merge['similarity']:.0%} alike"
    return words, "" if merge["dropped"] == merge["kept"] else passage_address(merge["dropped"])


def _steps(item: FusedItemDocument) -> list[tuple[str, str, str]]:
    explanation = item.get("explanation")
    steps: list[tuple[str, str, str]] = []
    for name, contribution in explanation["contributions"].items() if explanation else ():
        source, weight = item["sources"].get(name), explanation["weights"].get(name, 0.0) if explanation else 0.0
        found = f"rank {source['rank']}, {source['score']:.2f} × weight {weight:.2f}" if source else ""
        note = found or _NOTES.get(name, "did not find it")
        if name == "dense" and explanation and explanation.get("query_map"):
            note += ", by what was learnt from commits"
        steps.append((f"{RETRIEVERS.get(name, name)} ({name})", note, f"{contribution:.3f}"))
    for name, bonus in explanation["bonuses"].items() if explanation else ():
        steps.append((name.replace("_", " "), "bonus", f"+{bonus:.3f}"))
    if item["rerank_score"] is not None:
        steps.append(("cross-encoder", "read question and passage together", f"{item['rerank_score']:.3f}"))
    for name, signal in item["score"]["signals"].items():
        # What gave nothing explains nothing: "others say the same" would not even be true.
        if (value := f"{signal:+.3f}").strip("+-0."):
            note = _SIGNALS.get(name, "signal of the ranking")
            steps.append(("match" if name == "score" else name, note, value))
    return steps


_BRACKET = re.compile(r"\[([^\[\]]+)\]")
# Stands for a citation while the text is read: Markdown would take brackets for links, and signs in ids for styles.
_PLACE = re.compile("\ue000(\\d+)\ue001")
_PLACE_ENDS = re.compile("[\ue000\ue001]")


def written_view(synthesis: Synthesis, document: FusionResult) -> tuple[tuple[Block, ...], str]:
    """Return a model's text as blocks, and a note. If there is no text, the note says why."""
    items = document["items"]
    keys = {citation_key(item["citation"]["domain_id"], item["chunk_id"]): place for place, item in enumerate(items)}
    cites = [TextRun(str(place), "", CITE, passage_address(item["chunk_id"])) for place, item in enumerate(items, 1)]
    text = _PLACE_ENDS.sub("", synthesis.text or "")
    text = _BRACKET.sub(lambda found: f"\ue000{keys[found[1]]}\ue001" if found[1] in keys else found[0], text)
    said = f"Written by {synthesis.model} out of the passages below" if text else "No answer was written"
    note = (", " if text else ": ").join(filter(None, (said, synthesis.reason)))
    return tuple(_cited(blocks_of(text, ()), cites)), f"{note}."


def _cited(blocks: Sequence[Block], cites: Sequence[TextRun]) -> Iterator[Block]:
    for block in blocks:
        runs = tuple(piece for run in block.runs for piece in _pieces(run, cites))
        yield replace(block, runs=runs, blocks=tuple(_cited(block.blocks, cites)))


def _pieces(run: TextRun, cites: Sequence[TextRun]) -> Iterator[TextRun]:
    at = 0
    for place in _PLACE.finditer(run.text):
        yield run._replace(text=run.text[at : place.start()])
        yield cites[int(place[1])]
        at = place.end()
    yield run._replace(text=run.text[at:])


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number in the document, if the document has lines, and its text."""

    number: int | None
    runs: tuple[TextRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Neighbouring lines of code or blocks of prose, and the numbers of lines or blocks before and after them."""

    lines: tuple[Line, ...] = ()
    blocks: tuple[Block, ...] = ()
    before: int = 0
    after: int = 0


def code_excerpt(text: str, terms: Collection[str], first_line: int | None, language: str = "") -> Excerpt:
    """Return the neighbouring lines of code that hold the most different terms; the earliest lines if several do.

    Args:
        text: the text of the passage.
        terms: the terms of the question (``query_terms_of``).
        first_line: the number of its first line; ``None`` if its lines have no numbers.
        language: the language of the code, for its colours; empty for no colours.
    """
    text = text.rstrip()
    lines = list(marked_code(lines_of(text), colours_of(text, language), terms))
    shown = window(lines, MAX_LINES)
    return Excerpt(
        lines=tuple(
            Line(None if first_line is None else first_line + place, _cut(lines[place], MAX_CHARACTERS))
            for place in shown
        ),
        before=shown.start,
        after=len(lines) - shown.stop,
    )


def markup_excerpt(text: str, terms: Collection[str], *, title: str = "", format: str = "markdown") -> Excerpt:  # noqa: A002
    """Return one or more blocks of a passage that stand side by side and together hold the most of the terms.

    Entries of a list and rows of a table count as blocks. The head of a table stays above the chosen rows.

    Args:
        title: the title of the passage. Headings at the beginning that repeat it are left out.
        format: the format of the document. A passage of ``html`` is plain text.
    """
    text, format = (_with_tables(text), "markdown") if format == "html" else (text, format)  # noqa: A001
    return _chosen(_without_title(blocks_of(text, terms, format=format), title))


def _with_tables(text: str) -> str:
    """Return text that was read from HTML, with its rows of cells (``a | b``) written as Markdown tables."""
    lines: list[str] = []
    columns = 0
    for line in text.split("\n"):
        bars = line.count(" | ")
        if bars:
            lines += [] if columns == bars else [""]
            lines.append(f"| {line} |")
            lines += [] if columns == bars else [f"|{' --- |' * (bars + 1)}"]
        else:
            lines += ["", line] if columns else [line]
        columns = bars
    return "\n".join(lines)


def prose_excerpt(text: str, terms: Collection[str], *, title: str = "") -> Excerpt:
    """Return the neighbouring paragraphs of a plain text that hold the most different terms."""
    paragraphs = paragraphs_of(text)
    blocks = [Block(tag="p", lines=(1, 1), runs=highlighted(paragraph, terms)) for paragraph in paragraphs]
    return _chosen(_without_title(blocks, title))


def paragraphs_of(text: str) -> list[str]:
    """Return the paragraphs of a plain text: wrapped lines are joined, blank lines left out."""
    paragraphs: list[str] = []
    joins = False
    for line in lines_of(text):
        if not line.strip():
            joins = False
            continue
        if not joins or _BEGINS.match(line) or line[0].isspace():
            paragraphs.append(line)
        else:
            paragraphs[-1] += f" {line}"
        joins = len(line) >= _WRAPPED
    return paragraphs


def _without_title(blocks: Sequence[Block], title: str) -> Sequence[Block]:
    """Return blocks without the headings at the beginning, which the page shows already."""
    for place, block in enumerate(blocks):
        if block.tag != "heading" and "".join(run.text for run in block.runs).strip() != title:
            return blocks[place:]
    return blocks


def _chosen(blocks: Sequence[Block]) -> Excerpt:
    pieces = [(place, piece) for place, block in enumerate(blocks) for piece in _pieces_of_block(block)]
    shown = window([tuple(_texts(piece)) for _, piece in pieces], MAX_PARAGRAPHS)
    kept = groupby(pieces[shown.start : shown.stop], key=lambda piece: piece[0])
    return Excerpt(
        blocks=tuple(_joined(blocks[place], [piece for _, piece in group]) for place, group in kept),
        before=shown.start,
        after=len(pieces) - shown.stop,
    )


def _pieces_of_block(block: Block) -> Iterator[Block]:
    """Yield the entries of a list, the rows of a table, or the block itself."""
    if block.tag in {"ul", "ol"}:
        for place, entry in enumerate(block.blocks):
            yield replace(block, blocks=(entry,), level=block.level + place)
    elif block.tag == "table":
        yield from (replace(block, blocks=(row,)) for row in block.blocks[1:] or block.blocks)
    elif block.tag == "pre":
        shown = window([line.runs for line in block.blocks], MAX_LINES)
        yield replace(block, blocks=block.blocks[shown.start : shown.stop])
    else:
        yield replace(block, runs=_cut(block.runs, MAX_CHARACTERS))


def _joined(whole: Block, pieces: Sequence[Block]) -> Block:
    """Return the chosen pieces of a block as one block."""
    blocks = tuple(block for piece in pieces for block in piece.blocks)
    head = whole.blocks[:1] if whole.tag == "table" and len(whole.blocks) > 1 else ()
    return replace(pieces[0], blocks=(*head, *blocks))


def _texts(block: Block) -> Iterator[TextRun]:
    yield from block.runs
    for inner in block.blocks:
        yield from _texts(inner)


def _cut(runs: tuple[TextRun, ...], limit: int) -> tuple[TextRun, ...]:
    """Return at most ``limit`` characters, beginning shortly before the first match."""
    if sum(len(run.text) for run in runs) <= limit:
        return runs
    before = next((place for place, run in enumerate(runs) if run.kind == HIT), 0)
    skipped = max(0, sum(len(run.text) for run in runs[:before]) - _BEFORE_MATCH)
    skipped = 0 if skipped < _BEFORE_MATCH else skipped
    shown, at = [TextRun("… ")] if skipped else [], 0
    for run in runs:
        text = run.text[max(0, skipped - at) : max(0, skipped + limit - at)]
        at += len(run.text)
        shown += [run._replace(text=text)] if text else []
    return (*shown, TextRun(" …")) if at > skipped + limit else tuple(shown)
