"""Questions of the workspace's judged sets, and examples for the first page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from nornweave.ask.seen.texts import SeenTexts
from nornweave.config import Settings
from nornweave.core.access import Viewer
from nornweave.core.text.analyzer import FUNCTION_TERMS, query_terms

if TYPE_CHECKING:
    from evals.judgments import Judgment

MAX_EXAMPLES = 5
MAX_EXAMPLE_CHARACTERS = 90
MAX_PASSAGES = 50_000
"""Of what is served; in more the headings are not looked through."""
MAX_REMEMBERED = 100
_ASKING = ("how", "why", "what", "when", "which", "where")
# "What we test" and "When in doubt" need their document to mean something.
_LEAST_WORDS = 2


@dataclass(frozen=True, slots=True)
class QuestionWithPlaces:
    """A question and the places that answer it, best first, written as ``why`` reads them."""

    text: str
    places: tuple[str, ...]


class JudgedQuestions:
    """The judged sets, read once. A set that cannot be read is empty; ``nornweave eval`` says what is wrong."""

    def __init__(self, settings: Settings) -> None:
        domains = (domain.evaluation.judgments for domain in settings.domains.values())
        self.floors: Mapping[str, Mapping[str, float]] = {
            name.value: {str(measure): floor for measure, floor in domain.evaluation.floors.items()}
            for name, domain in settings.domains.items()
        }
        self._headings: dict[object, Sequence[str]] = {}
        self._folders = tuple(
            dict.fromkeys((*settings.evaluation.judgments, *(each for folders in domains for each in folders)))
        )

    @cached_property
    def sets(self) -> Mapping[str, Mapping[str, QuestionWithPlaces]]:
        """Return the questions by set name, then by id."""
        return {folder.resolve().name: _read(folder) for folder in self._folders}

    @cached_property
    def examples(self) -> Sequence[str]:
        """Return some answered questions of the first set: of several words, and not too long."""
        for questions in self.sets.values():
            texts = [
                question.text
                for question in questions.values()
                if question.places and " " in question.text and len(question.text) <= MAX_EXAMPLE_CHARACTERS
            ]
            if texts:
                step = max(1, len(texts) // MAX_EXAMPLES)
                return texts[::step][:MAX_EXAMPLES]
        return ()

    def asking_headings(self, texts: SeenTexts, viewer: Viewer, generations: tuple[str | None, ...]) -> Sequence[str]:
        """Return headings that read as questions, cached by viewer and generations."""
        key = viewer, generations
        if key not in self._headings:
            if len(self._headings) >= MAX_REMEMBERED:
                self._headings.clear()
            self._headings[key] = _asking_headings(texts)
        return self._headings[key]


def _asking_headings(texts: SeenTexts) -> Sequence[str]:
    """Return headings that the viewer may see and that begin with a word such as *how*. These words take turns."""
    asking = [
        [
            each["text"]
            for each in texts.complete(f"{word} ", 2 * MAX_EXAMPLES)["completions"]
            if each["kind"] == "heading"
            and each["text"].lower().startswith(word)
            and len(set(query_terms(each["text"])) - FUNCTION_TERMS) >= _LEAST_WORDS
            and len(each["text"]) <= MAX_EXAMPLE_CHARACTERS
        ]
        for word in _ASKING
    ]
    return [text for texts_of_rank in zip_longest(*asking) for text in texts_of_rank if text][:MAX_EXAMPLES]


def _read(folder: Path) -> Mapping[str, QuestionWithPlaces]:
    from evals.judged_files import read_judgments  # answering does not load evaluations

    try:
        judged = read_judgments(folder)
    except ValueError:
        return {}
    relevant = judged.relevant
    return {
        query.id: QuestionWithPlaces(
            query.text, tuple(map(_place, sorted(relevant.get(query.id, ()), key=lambda place: -place.grade)))
        )
        for query in judged.queries
    }


def _place(judgment: Judgment) -> str:
    return f"{judgment.path}:{judgment.lines[0]}" if judgment.lines else judgment.path
