"""An answer as the ask page shows it: results, and conflicts as columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from api.pages.addresses import passage_address
from api.pages.catalogue import DomainChoice, facets_of
from api.pages.citations import CitedPlace, place_of
from api.pages.conflict_view import conflict_of, stated
from api.pages.coverage_view import RETRIEVERS, coverage_of, not_searched, nothing_found, summary_of
from api.pages.excerpts import Excerpt, code_excerpt, markup_excerpt, prose_excerpt
from api.pages.markup import MARKUP
from api.pages.question_form import QuestionForm
from api.pages.text_runs import query_terms_of, runs_of
from api.pages.thread_view import MessageView, messages_of
from nornweave.ask.search.combine import EXACT
from nornweave.ask.search.late_interaction import LATE
from nornweave.ask.views.answer import (
    ExtractDocument,
    FusedItemDocument,
    FusionResult,
    MergeDocument,
)
from nornweave.core.text.legible import counted

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


def answer_view(
    document: FusionResult,
    catalogue: Sequence[DomainChoice],
    form: QuestionForm,
    near: Sequence[ExtractDocument] = (),
) -> dict[str, Any]:
    """Return what the page shows of an answer to the question of a form.

    ``tail`` are results below a clear gap, which are folded and have no excerpts; ``is_unsure`` says that the sentences
    are only what comes nearest; ``not_searched`` are reasons, each with the domains and agents that it holds for.

    Args:
        near: the sentences that come nearest, where the answer has none because it is doubtful.
    """
    sentences = document["extract"] or near
    terms = query_terms_of(document["query"])
    places = {item["chunk_id"]: place_of(item["citation"], item["chunk_id"]) for item in document["items"]}
    merges = document.get("merged", [])
    shown = _shown(document["items"], {sentence["chunk_id"] for sentence in sentences})
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
        "doubt": _doubt(document) if results else "",
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


def _shown(items: Sequence[FusedItemDocument], quoted: Collection[str]) -> int:
    """Count the results that are not folded: those before a clear gap, and what the first sentences are taken from."""
    last_quoted = max((number for number, item in enumerate(items, 1) if item["chunk_id"] in quoted), default=0)
    return max(last_quoted, before_gap([item["score"]["value"] for item in items]))


def _extract(
    sentences: Sequence[ExtractDocument], results: Sequence[Mapping[str, Any]], terms: Collection[str]
) -> list[dict[str, Any]]:
    """Return the sentences that answer, each with its result."""
    by_chunk = {result["chunk_id"]: result for result in reversed(results)}
    quoted = []
    for sentence in sentences:
        if result := by_chunk.get(sentence["chunk_id"]):
            fences = result["content"].count("```", 0, sentence["char_range"][0])
            is_code = result["is_code"] or fences % 2 == 1
            runs = stated(sentence["text"], terms, is_code=is_code)
            quoted.append({"result": result, "is_code": is_code, "runs": runs})
    return quoted


def _doubt(document: FusionResult) -> str:
    words = document["answerable"]["words"]
    return words or ("" if document["extract"] else "No single sentence answers this. These passages come nearest.")


def before_gap(scores: Sequence[float]) -> int:
    """Count the results before the widest gap between neighbours, if it is a clear one; otherwise all of them."""
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
    """Return a passage that answers: ``steps`` say why it is where it is, what looked, its rank and what it gave."""
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
    """Return what is shown of a passage: code, markup or plain text as an excerpt, or messages."""
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
