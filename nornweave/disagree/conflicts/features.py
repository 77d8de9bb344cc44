"""Features of a pair of facts for the logistic model, each explainable."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from nornweave.core.types import Fact
from nornweave.disagree.conflicts.comparable import WORD_ATTRIBUTES, NameMatch, match_names, value_of
from nornweave.disagree.conflicts.records import LocatedFact
from nornweave.disagree.facts.comparison import compared_kinds

STRUCTURED = frozenset(
    ("signature", "table", "heading", "list", "field", "manifest", "option", "definition", "setting")
)
_DECLARED = frozenset(("definition", "option", "fallback", "manifest"))
SMALL_CORPUS = 50
"""Documents that a corpus is taken to have besides its own: in an answer of ten chunks no word is common."""


MANY_DOCUMENTS = 500


@dataclass(frozen=True)
class FactCorpus:
    """Frequencies of words and names among the compared facts.

    Attributes:
        documents: the number of documents.
        holders: word in the context of a fact → the number of documents with such facts.
        in_words: the words in the contexts of facts that are not from code.
    """

    documents: int = 0
    holders: Counter[str] = field(default_factory=Counter)
    in_words: frozenset[str] = frozenset()

    def rarity(self, words: Iterable[str]) -> float:
        """Return the rarity of the rarest word, in [0, 1]; 0 without words.

        Inverse document frequency (Spärck Jones 1972), scaled so that a word of one document has about 1.
        """
        fewest = min(map(self.holders.__getitem__, words), default=None)
        if fewest is None:
            return 0.0
        size = SMALL_CORPUS + self.documents
        return math.log(size / max(1, fewest)) / math.log(size)


def corpus_of(facts: Collection[LocatedFact]) -> FactCorpus:
    """Count in how many documents each word is in the context of a fact."""
    contexts = {(one.place, word) for one in facts for word in one.context}
    return FactCorpus(
        documents=len({one.place for one in facts}),
        holders=Counter(word for _, word in contexts),
        in_words=frozenset(word for one in facts if one.fact.side != "code" for word in one.context),
    )


NO_CORPUS = FactCorpus()


def are_siblings(code: LocatedFact, other: LocatedFact) -> bool:
    """Tell whether the names of the facts' owners differ in only one word: ``BlobReader`` and ``BlobWriter``."""
    mine, theirs = code.near - other.near, other.near - code.near
    apart = not mine & other.context and not theirs & code.context
    return len(mine) == len(theirs) == 1 and apart and bool(code.near & other.near)


def _nearness(code: LocatedFact, other: LocatedFact, match: NameMatch, corpus: FactCorpus) -> float:
    """Return a measure, in [0, 1], of how rare the words are that the owners of two facts share."""
    if other.fact.attribute == "requires":  # the project itself has it
        return 1.0
    near = corpus.rarity((code.near & other.context) | (other.near & code.context))
    if match is NameMatch.OWNED:
        near = max(near, corpus.rarity(set(code.name_words) ^ set(other.name_words)))
    if other.fact.attribute in WORD_ATTRIBUTES:
        near = max(near, corpus.rarity(set(code.name_words) & set(other.name_words)))
    return near


def features(code: LocatedFact, other: LocatedFact, corpus: FactCorpus = NO_CORPUS) -> dict[str, float]:
    """Return the features of a pair of comparable facts with different values.

    Args:
        code: the fact from the side that is closer to the running system; the first result of ``comparable.ordered``.

    Returns:
        Feature → number, mostly 0 or 1. Every pair has the same features.
    """
    return (
        _of_names(code, other, corpus)
        | _of_statements(code.fact, other.fact)
        | {
            # The more documents meet, the more facts meet by chance.
            "documents": min(1.0, math.log1p(corpus.documents) / math.log1p(MANY_DOCUMENTS)),
        }
    )


def _of_names(code: LocatedFact, other: LocatedFact, corpus: FactCorpus) -> dict[str, float]:
    """Return features that show whether two facts concern one thing: names, owners and places."""
    match = match_names(code, other)
    shared = set(code.name_words) & set(other.name_words)
    is_apart = other.fact.attribute not in WORD_ATTRIBUTES
    near = _nearness(code, other, match, corpus)
    # A webhook's ``timeout`` beside ``webhook_timeout`` is a name of two words.
    is_owned = match is NameMatch.OWNED
    words = max(len(code.name_words), len(other.name_words)) if is_owned else len(shared)
    return {
        "name_completed_by_owner": float(is_owned),
        "longer_name": float(match is NameMatch.LONGER),
        "shared_name_words": min(3, words) - 1.0,
        "same_owner": near,
        "siblings": float(are_siblings(code, other)),
        "same_file_name": float(
            code.path != other.path and bool(code.file_words) and code.file_words == other.file_words
        ),
        # What one belongs to exists on the other side as well, and is something else there.
        "another_owner_in_words": is_apart * corpus.rarity((code.near - other.context) & corpus.in_words),
    }


def _of_statements(a: Fact, b: Fact) -> dict[str, float]:
    """Return features of the statements of two facts."""
    kinds = compared_kinds(value_of(a), value_of(b))
    return {
        "status_or_support": float(b.attribute == "status"),
        "requirement": float(b.attribute == "requires"),
        "structured": float(b.form in STRUCTURED),
        "topic": float(b.form == "topic"),
        "declared": float(a.form in _DECLARED),
        "setting": float(bool({a.side, b.side} & {"configuration"}) or "setting" in {a.attribute, b.attribute}),
        "qualified": float(bool(b.qualifiers) and b.attribute != "status"),  # every status has its occasion
        "code_has_none": float(a.kind == "none"),
        "other_kind": float(len(kinds) > 1 and "none" not in kinds),
        "people": float(b.side in {"conversation", "research"}),
    }
