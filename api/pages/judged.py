"""The questions that the workspace's own judged sets hold: examples to click, and what a measure was taken of."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nornweave.config import Settings

MAX_EXAMPLES = 5
MAX_EXAMPLE_CHARACTERS = 90


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
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
    def sets(self) -> Mapping[str, Mapping[str, JudgedQuestion]]:
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


def _read(folder: Path) -> Mapping[str, JudgedQuestion]:
    try:
        lines = (folder / "queries.jsonl").read_text("utf-8").splitlines()
        queries = [json.loads(line) for line in lines if line.strip()]
        places: dict[str, list[tuple[int, str]]] = {}
        with (folder / "qrels.tsv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                if int(row["grade"]) > 0:
                    places.setdefault(row["query_id"], []).append((-int(row["grade"]), _place(row["doc_id"])))
        return {
            str(query["id"]): JudgedQuestion(
                query["text"], tuple(place for _, place in sorted(places.get(str(query["id"]), []), key=_grade))
            )
            for query in queries
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _grade(place: tuple[int, str]) -> int:
    return place[0]


def _place(doc_id: str) -> str:
    """Return ``path:line`` of ``path#L7-9``; of other places the path."""
    path, _, part = doc_id.partition("#")
    line = part.removeprefix("L").partition("-")[0]
    return f"{path}:{line}" if part.startswith("L") and line.isdecimal() else path
