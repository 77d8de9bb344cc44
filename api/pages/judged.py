"""Questions of the workspace: those of its judged sets, which measures were taken of, and examples to click."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nornweave.config import Settings

if TYPE_CHECKING:
    from evals.judgments import Judgment

MAX_EXAMPLES = 5
MAX_EXAMPLE_CHARACTERS = 90


@dataclass(frozen=True, slots=True)
class QuestionWithPlaces:
    """A question and the places that answer it, best first, as ``why`` takes them."""

    text: str
    places: tuple[str, ...]


class JudgedQuestions:
    """Reads the sets once; a set that cannot be read has none (``nornweave eval`` says what is wrong with it)."""

    def __init__(self, settings: Settings) -> None:
        domains = (domain.evaluation.judgments for domain in settings.domains.values())
        self.floors: Mapping[str, Mapping[str, float]] = {
            name.value: {str(measure): floor for measure, floor in domain.evaluation.floors.items()}
            for name, domain in settings.domains.items()
        }
        self._folders = tuple(
            dict.fromkeys((*settings.evaluation.judgments, *(each for folders in domains for each in folders)))
        )

    @cached_property
    def sets(self) -> Mapping[str, Mapping[str, QuestionWithPlaces]]:
        """Return the questions by the name of their set and their id."""
        return {folder.resolve().name: _read(folder) for folder in self._folders}

    @cached_property
    def examples(self) -> Sequence[str]:
        """Return some questions of the first set that people would ask: answered, in words, and not too long."""
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
