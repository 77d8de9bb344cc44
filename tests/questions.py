"""Questions as an edge makes them, asked now."""

from typing import Any

from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Deadline, Question
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.views.answer import FusionResult
from nornweave.core.access import OPERATOR
from nornweave.core.types import present


def question_of(text: str, *, timeout_ms: int | None = None, **options: Any) -> Question:
    """Return a question that has just come in, to be answered within ``timeout_ms``; ``None`` waits."""
    deadline = None if timeout_ms is None else Deadline(timeout_ms)
    return Question(**{"text": text, "now": present(), "viewer": OPERATOR, "deadline": deadline, **options})


def query(engine: Engine, question: Question) -> FusionResult:
    """Answer a question on behalf of its viewer."""
    return engine.as_seen_by(question.viewer).answers.query(question)


def answers_of(engine: Engine) -> SeenAnswers:
    """Return the answers of an engine to who operates it."""
    return engine.as_seen_by(OPERATOR).answers
