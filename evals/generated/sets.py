"""The judged set of a corpus by rule: the same queries for the same corpus, and nearly the same for a similar one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest

import numpy as np

from evals.generated.docstrings import Docstrings
from evals.generated.drafts import Draft, DraftCandidate, DraftRule, short_hash
from evals.generated.headings import Headings
from evals.generated.query_words import normalised
from evals.generated.threads import IssueAnswers, PostedAnswers, Replies
from evals.judgments import JudgedQuery, JudgedSet, Judgment, JudgmentOrigin
from nornweave.core.text import analyzer
from nornweave.core.types import Domain
from nornweave.index.index import Index

NAME = "generated"
NOTE = (
    "Made by rule out of the corpus, read by nobody: the first sentence of a docstring must find its function, a "
    "heading its section, a question its accepted answer, a chat question the reply to it. Easier than what people "
    "ask: a query has the words of its own document, and what answers it often repeats them; parents' headings, "
    "names and paths are not hidden. The words that a query was taken from (the docstring, the heading, the title, "
    "the message) are hidden: the chunks that hold or quote them are scored as if they did not. Good for comparing "
    "one index with the next, not for saying how good it is."
)
RULES: Mapping[Domain, tuple[DraftRule, ...]] = {
    Domain.CODE: (Docstrings(),),
    Domain.DOCUMENTATION: (Headings(),),
    Domain.CONVERSATIONS: (IssueAnswers(), Replies()),
    Domain.RESEARCH: (Headings(), PostedAnswers()),
}

MAX_PER_DOCUMENT = 3
"""Queries of one kind from one document, unless there are too few documents."""
# Candidates that are read for each query that is wanted, before a corpus is taken to hold no more.
_TRIES = 12
# Documents that are read at a time.
_BATCH = 64
# Chunks with all words of a query that are read to see whether they say it, too.
_READ = 100


def generate(generation: Index, domain: Domain, *, limit: int = 100) -> JudgedSet:
    """Make a judged set out of an open generation.

    A place's turn comes by a hash of its kind, path and name, and the first ``limit`` that give a query are taken: a
    document that is added or removed changes few of the others. Each rule of the domain gets an equal share, and what
    it cannot fill goes to the others. No query's words are said in two places, as far as that can be told.

    Args:
        generation: published, or a candidate.
        domain: whose it is; it decides which rules apply.

    Returns:
        A set named ``generated``, ordered by kind and id, each query with one judgment; without queries where the
        corpus gives none, which cannot be measured.

    Raises:
        StoreError: the generation cannot be read.
    """
    sampled = [islice(_sample(rule, generation, limit), limit) for rule in RULES[domain]]
    taken: dict[str, Draft] = {}
    for drafts in zip_longest(*sampled):
        for draft in drafts:
            if draft is not None and len(taken) < limit:
                taken.setdefault(normalised(draft.text), draft)
    identified = sorted(
        ((f"{each.kind}-{short_hash(each.kind, each.hidden.path, each.text)}", each) for each in taken.values()),
        key=lambda pair: (pair[1].kind, pair[0]),
    )
    return JudgedSet(
        NAME,
        tuple(JudgedQuery(name, draft.text, kind=draft.kind, hidden=draft.hidden) for name, draft in identified),
        tuple(Judgment(name, draft.hidden.path, draft.lines, draft.message_id, 1) for name, draft in identified),
        JudgmentOrigin.GENERATED,
        NOTE,
    )


def _sample(rule: DraftRule, generation: Index, limit: int) -> Iterator[Draft]:
    """Yield the queries of one kind in the order of their hashes."""
    candidates = sorted(
        rule.candidates(generation), key=lambda candidate: (candidate.order, candidate.chunks[0].chunk_no)
    )
    documents = len({candidate.document_no for candidate in candidates})
    candidates = candidates[: limit * _TRIES]
    most = max(MAX_PER_DOCUMENT, math.ceil(2 * limit / max(1, documents)))
    per_document: Counter[int] = Counter()
    for start in range(0, len(candidates), _BATCH):
        batch = candidates[start : start + _BATCH]
        for candidate, draft in _drafts(rule, generation, batch):
            if per_document[candidate.document_no] < most and (rule.distinct or _is_unique(generation, draft)):
                per_document[candidate.document_no] += 1
                yield draft


def _drafts(
    rule: DraftRule, generation: Index, candidates: Sequence[DraftCandidate]
) -> Iterator[tuple[DraftCandidate, Draft]]:
    texts = generation.document_texts(candidate.document_no for candidate in candidates)
    for candidate in candidates:
        draft = rule.draft(candidate, texts[candidate.document_no])
        if draft is not None:
            yield candidate, draft


def _is_unique(generation: Index, draft: Draft) -> bool:
    """Tell whether a query's words stand side by side nowhere but where it was taken from."""
    wording = f" {normalised(draft.text)} "
    holding = generation.holding(analyzer.query_terms(draft.text))[:_READ]
    for chunk in generation.chunks(np.asarray(holding, np.int32)).values():
        own = chunk.path == draft.hidden.path and chunk.char_range[0] < draft.hidden.end
        if not (own and draft.hidden.start < chunk.char_range[1]) and wording in f" {normalised(chunk.content)} ":
            return False
    return True
