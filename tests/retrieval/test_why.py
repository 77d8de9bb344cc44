"""Why a place is not in an answer: the stage is the one at which it lost, and what is said to lift it does."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.ask.views.texts import WhyDocument
from nornweave.ask.why import WORDS_ADDED, SoughtPlace, place_in, read_place
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR
from nornweave.core.types import Domain, present
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

CONFIG = """
data_dir: var
sources:
  - {id: guide, domain: documentation, type: files, path: guide}
  - {id: code, domain: code, type: files, path: code}
domains:
  documentation: {embedding: {model: "hash:64", dimensions: 64}, reranking: {model: null}}
  code: {embedding: {model: "hash:64", dimensions: 64}, reranking: {model: null}}
"""
HARBOUR = "# Harbour\n\nBoats moor at the quay, which has 7461 moorings, at duskk.\n"
QUESTION = Question(text="retry limit of the payment queue", now=present(), viewer=OPERATOR, top_k=3)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    settings = written(tmp_path_factory.mktemp("why"))
    for domain in settings.served_domains:
        assert not run(domain_parts(settings, domain), SyncOptions(run_id="why", wait_s=0)).failed
    with Engine(settings, watch=False) as engine:
        yield engine


def written(folder: Path) -> Settings:
    (folder / "guide").mkdir()
    (folder / "code").mkdir()
    for number in range(8):
        text = f"# Part {number}\n\nThe retry limit of the payment queue is {number}, says part {number}.\n"
        (folder / "guide" / f"part-{number}.md").write_text(text, encoding="utf-8")
    (folder / "guide" / "copy.md").write_text((folder / "guide" / "part-0.md").read_text(), encoding="utf-8")
    (folder / "guide" / "harbour.md").write_text(HARBOUR, encoding="utf-8")
    (folder / "guide" / "port.md").write_text("# Port\n\nThe quay has 7461 moorings.\n", encoding="utf-8")
    (folder / "code" / "queue.py").write_text("def drain():\n    return 1\n", encoding="utf-8")
    (folder / "nornweave.yaml").write_text(CONFIG, encoding="utf-8")
    return load_settings(folder / "nornweave.yaml", {})


def why(engine: Engine, path: str, **changes: Any) -> WhyDocument:
    found = engine.as_seen_by(OPERATOR).answers.why(replace(QUESTION, **changes), read_place(path))
    assert found is not None
    return found


def test_what_is_shown_has_its_rank(engine: Engine) -> None:
    items = engine.as_seen_by(OPERATOR).answers.answer(QUESTION).items
    found = why(engine, items[1].citation.source_path)
    assert (found["shown"], found["stage"], found["rank"]) == (True, None, 2)


@pytest.mark.parametrize(("path", "stage", "changes"), [
    ("queue.py", "filtered", {"domains": (Domain.DOCUMENTATION,)}),
    ("harbour.md:3", "filtered", {"filters": {Domain.DOCUMENTATION: {"path_glob": "part-*"}}}),
    ("harbour.md", "combined", {}),
])  # fmt: skip
def test_what_lifts_it_was_tried(engine: Engine, path: str, stage: str, changes: dict[str, Any]) -> None:
    found = why(engine, path, **changes)
    assert (found["shown"], found["stage"]) == (False, stage)
    assert found["change"] and found["changed"]
    if stage == "combined":
        assert found["rank"] and found["rank"] > 3 and found["margin"] and found["margin"] > 0


def test_words_are_proposed_that_a_person_would_add(engine: Engine) -> None:
    agent = engine.agents[Domain.DOCUMENTATION]
    with agent.generation.use(OPERATOR) as generation:
        place = place_in(generation, Domain.DOCUMENTATION, SoughtPlace("harbour.md"), "boats at rest")
    assert place is not None
    assert place.words[0] == "Harbour", "the heading first"
    assert set(place.words) <= {"Harbour", "moor", "moorings", "quay"}, "no slip, no number, no word of the question"
    assert 1 < len(place.words) <= WORDS_ADDED
    assert not {"moor", "moorings"} <= set(place.words), "one form of a word"


def test_what_was_merged_and_what_was_cut(engine: Engine) -> None:
    answer = engine.as_seen_by(OPERATOR).answers.answer(QUESTION)
    shown = {item.citation.source_path for item in answer.items}
    twin = "part-0.md" if "copy.md" in shown else "copy.md"
    assert "part-0.md" not in shown or why(engine, twin)["stage"] == "merged"
    cut = why(engine, answer.items[-1].citation.source_path, max_tokens=20)
    assert (cut["stage"], cut["change"]) == ("budget", "without max_tokens, min_score and diversity")


def test_a_path_that_nobody_has(engine: Engine) -> None:
    answers = engine.as_seen_by(OPERATOR).answers
    assert answers.why(QUESTION, SoughtPlace("nothing.md")) is None
    assert answers.why(QUESTION, SoughtPlace("harbour.md", line=99)) is None


def test_a_place_is_a_path_with_or_without_a_line() -> None:
    assert read_place("a/b.py:12") == SoughtPlace("a/b.py", 12)
    assert read_place("a/b.py") == SoughtPlace("a/b.py")
    assert read_place("https://a.example/x:y") == SoughtPlace("https://a.example/x:y")
