"""Leave out passages that a question excludes, and put passages that affirm what it negates last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nornweave.ask.search.combine import Ranking, reorder
from nornweave.ask.search.question import Question
from nornweave.core.text.analyzer import analyze
from nornweave.core.text.negation import affirms, negated_terms
from nornweave.index.index import Index
from nornweave.index.port import Mask

OPPOSITE, LOOKED_AT = 0.25, 20
"""What a passage counts that affirms what is asked for as negated, and how many are looked at."""


def leaving_out(question: Question, generation: Index) -> tuple[Question, Mask | None, dict[str, int]]:
    """Prepare a question that excludes words (``-redis``).

    Returns:
        The question, a mask of the chunks without an excluded word (``None`` if no word is excluded), and excluded word
        → the number of chunks that hold it. If passages contain a word with the minus sign, such as the flag ``-race``,
        it is not an exclusion and is put back into the question.
    """
    flags = [word for word in question.left_out if len(generation.containing(f" -{word}", 1))]
    words = [word for word in question.left_out if word not in flags]
    if flags:
        question = replace(question, text=" ".join((question.text, *(f"-{word}" for word in flags))))
    if not words:
        return question, None, {}
    left, counts = generation.within(()).copy(), {}  # of what the viewer may see: chunks are counted by it
    for word in words:
        chunks = generation.holding(analyze(word))
        left[chunks], counts[word] = False, len(chunks)
    return question, left, counts


def below_opposite(ranking: Ranking, text: str, generation: Index) -> Ranking:
    """Return a ranking in which passages that affirm a negated word of the question come after the others."""
    negated = negated_terms(text)
    if not negated:
        return ranking
    chunks = generation.chunks(ranking.numbers[:LOOKED_AT])
    factors = np.ones(len(ranking))
    for place, number in enumerate(ranking.numbers[:LOOKED_AT].tolist()):
        chunk = chunks[number]
        if affirms("\n\n".join(filter(None, (chunk.title, chunk.section, chunk.content))), negated):
            factors[place] = OPPOSITE
    return reorder(ranking, factors)
