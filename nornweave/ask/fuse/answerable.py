"""How probable it is that something in an answer answers the question, and the warning if it is not.

Two logistic models over the signals of the best domain tell, one whether an answer is doubtful, one whether the
question is of another field; their coefficients are in a file beside this module. Their training data and accuracy are
in ``docs/figures-archive.md``, *Is there an answer?*
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from nornweave.ask.search.exact import ASKS_QUANTITY
from nornweave.ask.search.history import is_housekeeping, is_named, names_value, unknown_release, without_past
from nornweave.ask.search.pasted import without_lines
from nornweave.ask.search.query import read_query, words_of
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import RecallItem, RecallResponse, SearchSignals
from nornweave.core.text.negation import is_question, not_left_out
from nornweave.core.text.terminal import counted, legible
from nornweave.core.types import COMMIT, ChunkId
from nornweave.disagree.conflicts.decision import Model

NO_SENTENCE = "No single sentence answers this; the passages that come nearest are below."
# More probably not than yes.
UNSURE_BELOW = 0.5
UNKNOWN_NAME = 5
"""How much more often no passage holds a name of the question where nothing answers, if an answer looked probable."""
MOST_AHEAD = 1.8
"""How far ahead of the next passages a commit counts: among few passages one may be far ahead by chance."""
NEXT, SMALL = 9, 1e-9
"""So many passages are the next ones."""
NAMED = 0.9
"""How probable it is that what a question calls by its name answers it: a release, the last change of a file."""
FEWEST_WORDS, MOST_WORDS = 3, 12
"""Fewer words are keywords, and more are pasted: how many tells no more."""
_MESSAGE_WORDS = 8
"""So long is what somebody pastes; keywords are fewer."""
_QUESTION_WORD = re.compile(r"\b(?:how|what|when|where|which|whose|why)\b", re.IGNORECASE)
_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE)
_BETWEEN = re.compile(r"\b(?:vs|versus)\b", re.IGNORECASE)
"""Stands between what is compared, and in no passage."""
_WORDS_SHOWN, _WORD_CHARACTERS = 5, 64


@dataclass(frozen=True, slots=True)
class AnswerableModel:
    """The models of how probable it is that an answer answers.

    Attributes:
        model: the model for all answers.
        field: the model of whether the question is of the field of what is searched.
        nothing_below: below this probability of ``field`` the question is of another field and has no answer.
        commits: the model for an answer whose first item is a commit.
    """

    model: Model
    field: Model
    nothing_below: float
    commits: Model


@dataclass(frozen=True, slots=True)
class Answerable:
    """How probable it is that an answer answers its question.

    Attributes:
        probability: in (0, 1); ``None`` if a remote agent answered, because its search gives no signals.
        unknown_words: words of the question that occur nowhere in the asked domains, as far as the viewer may see them.
        was_searched: whether there was a passage to search.
        read_as: a note on how the question was changed (shortened, or words left out); empty if it was not changed.
        missing: a sentence on a release or a change that is asked for and not known; empty if there is none.
        is_quoted: whether the answer quotes a sentence, or has no passage to quote from.
    """

    probability: float | None = None
    unknown_words: tuple[str, ...] = ()
    was_searched: bool = True
    read_as: str = ""
    missing: str = ""
    is_quoted: bool = True

    @property
    def is_doubtful(self) -> bool:
        """Tell whether it is doubtful that any item answers the question."""
        return self.probability is not None and self.probability < UNSURE_BELOW

    @property
    def may_answer(self) -> bool:
        """Tell whether an item may answer the question although this is doubtful.

        This holds for three in five doubtful questions that have an answer.
        """
        return self.is_doubtful and (self.probability or 0.0) >= shipped().nothing_below

    @property
    def words(self) -> str:
        """Return ``doubt``. If nothing is quoted although the answer is not doubtful, a sentence says so."""
        is_silent = not self.is_quoted and not self.is_doubtful
        return " ".join(filter(None, [self.doubt, NO_SENTENCE if is_silent else ""]))

    @property
    def doubt(self) -> str:
        """Return ``read_as`` and a warning, which an answer that is doubtful always has; empty if there is neither."""
        return " ".join(filter(None, [self.read_as, self._doubt]))

    @property
    def _doubt(self) -> str:
        if not self.was_searched:
            return "There is no passage to search: the filters leave none, or nothing is published."
        if self.missing:
            return self.missing
        known = [f"“{legible(word)[:_WORD_CHARACTERS]}”" for word in self.unknown_words[:_WORDS_SHOWN]]
        holds = f"No passage holds {' or '.join(known)}" if known else ""
        if self.is_doubtful and not self.may_answer:
            return f"{holds or 'Nothing here seems to answer this'}; the nearest by meaning are below."
        return f"{holds or 'It is not sure that anything here answers this'}." if holds or self.is_doubtful else ""


@cache
def shipped() -> AnswerableModel:
    """Return the models that are shipped with NornWeave."""
    stored = json.loads(resources.files(__package__).joinpath("answerable.json").read_text(encoding="utf-8"))
    model, field, commits = (
        Model(stored[of]["intercept"], stored[of]["weights"]) for of in ("doubt", "field", "commits")
    )
    return AnswerableModel(model, field, stored["nothing_below"], commits)


def judge(
    question: Question, responses: Sequence[RecallResponse], ranked: Sequence[tuple[RecallItem, float]] = ()
) -> Answerable:
    """Return how probable it is that the domains' answers answer the question.

    Args:
        ranked: the items of all answers with their scores, best first.
    """
    told = [response.signals for response in responses]
    if not told or None in told:
        return Answerable(read_as=_read_as(question, responses))
    signals = [one for one in told if one is not None]
    known = frozenset().union(*(one.known for one in signals))
    last_changes = frozenset[ChunkId]().union(*(one.last_changes for one in signals))
    is_called = bool(ranked) and (is_named(question.text, ranked[0][0]) or ranked[0][0].chunk_id in last_changes)
    is_commit = bool(ranked) and not is_called and ranked[0][0].metadata.get("kind") == COMMIT
    if is_called:
        probability = NAMED
    elif is_commit:
        probability = _of_commit([score for _, score in ranked])
        is_other = not names_value(ranked[0][0].content, question.text)  # Python 3.7, where Python 3.9 is asked about
        if is_other or is_housekeeping(str(ranked[0][0].citation.title), question.text):
            probability = min(probability, UNSURE_BELOW / 2)
    else:
        probability = _of_items(question.text, best_signals(signals), known)
    not_found = next(filter(None, (one.older for one in signals)), "")
    missing = unknown_release(question.text, [item for item, _ in ranked], not_found)
    probability = min(probability, UNSURE_BELOW / 2) if missing else probability
    unknown = _unknown_words(question.text, known, names_only=probability >= UNSURE_BELOW and not is_commit)
    if unknown and probability >= UNSURE_BELOW:
        probability /= probability + UNKNOWN_NAME * (1 - probability)
    return Answerable(
        read_as=_read_as(question, responses),
        missing=missing,
        probability=round(probability, 4),
        unknown_words=unknown,
        was_searched=any(response.total_searched for response in responses),
    )


def _of_items(text: str, signals: Mapping[str, float], known: Collection[str]) -> float:
    """Return how probable it is that some item answers.

    Of a long question each passage holds less, so that the same score tells more.
    """
    words = _subject_words(text)
    said = {
        "words": math.log(min(max(len(words), FEWEST_WORDS), MOST_WORDS)),
        "unknown_words": sum(word not in known for word in words) / max(1, len(words)),
    }
    probability, own_field = shipped().model.probability({**signals, **said}), shipped().field.probability(signals)
    if own_field < shipped().nothing_below and not _is_pasted(text):  # the model knows only questions
        return min(probability, own_field)
    return max(probability, shipped().nothing_below)


def _is_pasted(text: str) -> bool:
    """Tell whether a question is more than a question: an error message, a trace or lines of code."""
    return "\n" in text.strip() or (not _asks(text) and len(text.split()) >= _MESSAGE_WORDS)


def _asks(text: str) -> bool:
    return is_question(text) or _QUESTION_WORD.search(text) is not None


def _subject_words(text: str) -> list[str]:
    return [*words_of(_BETWEEN.sub(" ", text))]


def _unknown_words(text: str, known: Collection[str], *, names_only: bool) -> tuple[str, ...]:
    """Return the words of a question's subject that no domain holds.

    Line numbers and addresses do not belong to the subject. Of pasted text, only the lines that ask something do.

    Args:
        names_only: whether only names are returned. A probable answer may use synonyms of other words; but how far a
            commit is ahead of other commits does not tell that it is about a word that none of them has.
    """
    lines = [line for line in text.splitlines() if _asks(line)] if _is_pasted(text) else [text]
    asked = ASKS_QUANTITY.sub(" ", without_past(_ADDRESS.sub(" ", "\n".join(map(without_lines, lines)))))
    unknown = [word for word in _subject_words(asked) if word not in known]
    if names_only:
        names = {word.written for word in read_query(asked).words if word.is_name}
        unknown = [word for word in unknown if word in names]
    return tuple(unknown)


def _of_commit(scores: Sequence[float]) -> float:
    """Return how probable it is that the first item answers, which is a commit.

    Commits are short and say things in words of their own, so the general model doubts nearly all of them. This model
    uses how far the commit is ahead of the next items, and its score.

    Args:
        scores: the scores of all items, best first.
    """
    first, *following = scores[: NEXT + 1]
    others = max(first / MOST_AHEAD, math.fsum(following) / max(1, len(following)), SMALL)
    return shipped().commits.probability({"ahead": math.log(max(first, SMALL) / others), "score": first})


def _read_as(question: Question, responses: Sequence[RecallResponse]) -> str:
    """Return sentences on how the question was read: words left out, and a shortened text."""
    counts = {
        word: [response.left_out[word] for response in responses if word in response.left_out]
        for word in question.left_out
    }
    said = [
        f"Left out: {counted(sum(held), 'passage')} with “{legible(word)}”."
        if held
        else f"“-{legible(word)}” was searched as it stands."
        for word, held in counts.items()
    ]
    if name := not_left_out(question.text):
        said.append(f"Passages about “{legible(name)}” were not left out; -{legible(name)} leaves them out.")
    return " ".join(filter(None, [question.shortened, *said]))


def best_signals(signals: Sequence[SearchSignals]) -> Mapping[str, float]:
    """Return the signals of the domain whose first item scores best."""
    return max(signals, key=lambda one: one.values["score"]).values
