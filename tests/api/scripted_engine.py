"""The real engine over a small published corpus; a test says what takes long or goes wrong in it."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shown_answers import document, item

from nornweave.ask.answer.synthesis.synthesizer import Synthesizer
from nornweave.ask.engine import Engine
from nornweave.ask.fuse.records import Answer, Recalled
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import AgentState, RecallResponse
from nornweave.ask.seen import SeenEngine
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.views.answer import FusionResult
from nornweave.carry.ledger_file import ledger_place, published, save_ledger
from nornweave.carry.wiring import domain_folder
from nornweave.config import Settings
from nornweave.config.workspace import FusionSettings
from nornweave.connect.connectors import load_settings
from nornweave.core.access import ANYONE, OPERATOR, Viewer
from nornweave.core.types import Domain, Fact, GenerationId, JsonValue, Span, present
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.ledger import Ledger, LedgerEntry


class ScriptedAgent(Agent):
    """The real agent, except for what a test sets.

    Attributes:
        seconds: how long it takes, or until it is ``released``.
        failure: what it raises.
        asked, left_ms: the questions, and the time that each had left.
        at_once, most_at_once: how many it answers right now, and did at most.
    """

    def __init__(self, *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
        self.seconds = 0.0
        self.released: threading.Event | None = None
        self.failure: Exception | None = None
        self.asked: list[Question] = []
        self.left_ms: list[int | None] = []
        self.at_once = self.most_at_once = 0
        self._stated: AgentState | None = None
        self._counting = threading.Lock()

    @property
    def state(self) -> AgentState:
        return self._stated or super().state

    @state.setter
    def state(self, state: AgentState) -> None:
        self._stated = state

    def lose_encoder(self) -> None:
        """Be DEGRADED."""
        self.encoding.problem = "its encoder is lost"

    def health(self, viewer: Viewer) -> dict[str, JsonValue]:
        return {**super().health(viewer), "statistics": {"requests": len(self.asked)}}

    def recall(self, question: Question) -> RecallResponse:
        with self._counting:
            self.asked.append(question)
            self.left_ms.append(question.deadline.left_ms if question.deadline else None)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            (self.released.wait if self.released else time.sleep)(self.seconds)
            if self.failure:
                raise self.failure
            return super().recall(question)
        finally:
            with self._counting:
                self.at_once -= 1


@dataclass(frozen=True)
class RecordedAnswers(SeenAnswers):
    """The real answers, and what was asked."""

    engine: ScriptedEngine = field(kw_only=True)

    def answer(self, question: Question) -> Answer:
        self.engine.questions.append(question)
        self.engine.left_ms.append(question.deadline.left_ms if question.deadline else None)
        if self.engine.failure:
            raise self.engine.failure
        return super().answer(question)

    def fuse(self, question: Question, recalled: Recalled) -> FusionResult:
        self.engine.fused.append(recalled)
        return super().fuse(question, recalled)


class ScriptedEngine(Engine):
    """The real engine with scripted agents; ``failure`` is what answering raises."""

    agent_type = ScriptedAgent

    def __init__(self, settings: Settings, domains: Sequence[Domain] | None = None, **options: Any) -> None:
        super().__init__(settings, domains, **options)
        self.settings = settings
        self.questions: list[Question] = []
        self.left_ms: list[int | None] = []
        self.fused: list[Recalled] = []
        self.failure: Exception | None = None

    def as_seen_by(self, viewer: Viewer) -> SeenEngine:
        return replace(super().as_seen_by(viewer), answers=RecordedAnswers(self.path, viewer, engine=self))

    def agent(self, domain: Domain) -> ScriptedAgent:
        agent = self.agents[domain]
        assert isinstance(agent, ScriptedAgent)
        return agent

    def forget(self) -> None:
        """Forget what was asked; answers that can be judged stay."""
        for record in (self.questions, self.left_ms, self.fused, *(self.agent(domain).asked for domain in self.agents)):
            record.clear()

    def write_with(self, **synthesis: Any) -> None:
        """Let a model write answers, by these settings."""
        fusion = FusionSettings(**synthesis)
        self.path.settings = self.settings.model_copy(update={"fusion": fusion})
        self.path.fusion, self.path.synthesizer = fusion, Synthesizer(fusion)

    def remember(self, query_id: str, *chunk_ids: str) -> None:
        """Have given an answer to anyone that showed chunks."""
        shown = document(query_id, *map(item, chunk_ids))
        self.path.feedback.shown(Question(text="pay", now=present(), viewer=ANYONE), shown)

    @property
    def judged(self) -> list[tuple[str, str, bool]]:
        """Everything that was said of answers."""
        judged = self.path.feedback.judged()
        return [(answer.query_id, chunk, useful) for answer in judged for chunk, useful in answer.votes.items()]

    @property
    def handed_in(self) -> list[str]:
        """The file names in the inboxes."""
        inboxes = [self.settings.inbox(domain) for domain in self.agents]
        return [file.name for inbox in inboxes if inbox.exists() for file in inbox.rglob("*.json")]

    def chunk_of(self, domain: Domain, source_id: str, path: str) -> str:
        """Return the id of the first chunk of a document."""
        found = self.as_seen_by(OPERATOR).texts.document(domain, source_id, path)
        assert found
        return found["chunks"][0]


def copied(settings: Settings, folder: Path) -> Settings:
    """Return a copy of a published workspace that a test may change; generations, which never change, are linked.

    What other tests asked of the workspace and said of its answers is left out.
    """

    def copy(source: str, target: str) -> None:
        (os.link if "/generations/gen-" in source else shutil.copy2)(source, target)

    others = shutil.ignore_patterns("feedback")
    shutil.copytree(settings.file.parent, folder, copy_function=copy, dirs_exist_ok=True, ignore=others)
    return load_settings(folder / settings.file.name, {})


def unpublish(settings: Settings, *domains: Domain) -> None:
    """Take away what was published of domains."""
    for domain in domains:
        shutil.rmtree(domain_folder(settings, domain) / "generations")


def ledger_entry(entity: str, *domains: Domain, settled: bool = False, **changes: Any) -> LedgerEntry:
    """Return an entry of the ledger; both sides are in the documentation unless said otherwise."""
    first, second = (
        LocatedFact(
            fact=Fact(
                name=entity.lower(), owner="", attribute="default", kind="number", value=str(place), unit="s",
                side="documentation", form="definition", span=Span(0, 9), statement=f"It is {place} s.",
            ),
            domain=domain.value,
            source_id="payments",
            path="a.md",
            chunk_id=f"{domain.value}-{place}",
        )
        for place, domain in enumerate(domains or (Domain.DOCUMENTATION, Domain.DOCUMENTATION))
    )  # fmt: skip
    entry = LedgerEntry(
        entry_id=entity,
        entity=entity,
        attribute="timeout",
        detector="same_entity_divergence",
        sides=(first, second),
        suggested=first.domain,
        reason="newer",
        explanation="0 s and 1 s",
        confidence=0.9,
        first_seen=datetime(2026, 1, 19, tzinfo=UTC),
        settled=datetime(2026, 1, 20, tzinfo=UTC) if settled else None,
    )
    return replace(entry, **changes)


def write_ledger(settings: Settings, *entries: LedgerEntry, made_of: Mapping[str, GenerationId] | None = None) -> None:
    """Write a ledger that was made of what is published, or of other generations."""
    ledger = Ledger(
        made_at=datetime(2026, 1, 21, tzinfo=UTC),
        generations=published(settings) if made_of is None else made_of,
        open=tuple(entry for entry in entries if entry.settled is None),
        settled=tuple(entry for entry in entries if entry.settled),
    )
    (settings.data_dir / "ledger").mkdir(exist_ok=True)
    save_ledger(ledger_place(settings), ledger)


def write_status(settings: Settings, domain: Domain) -> None:
    """Write the status of a domain in which everything went wrong that can."""
    latest = {
        "documents": 2,
        "chunks": 4,
        "failed": [{"source_id": "payments", "path": "a.pdf", "reason": "the PDF is encrypted", "stale": True}],
        "held": [{"source_id": "payments", "reason": "9 of 10 documents are gone", "paths": ["b.md", "c.md"]}],
        "unavailable": {"wiki": "no such folder: /srv/wiki"},
        "skip_reasons": {"ignored by .gitignore": 3},
    }
    runs = [
        {"at": "2026-01-20T10:00:00+00:00", "run_id": "2", "error": "the encoder cannot be loaded"},
        {"at": "2026-01-19T10:00:00+00:00", "run_id": "1", "generation": "gen-000001", "published": True,
         "added": 1, "changed": 2, "removed": 0, "failed": 1, "seconds": 4.2},
    ]  # fmt: skip
    recorded = {"checked_at": "2026-01-20T10:00:00+00:00", "latest": latest, "runs": runs}
    (domain_folder(settings, domain) / "status.json").write_text(json.dumps(recorded), encoding="utf-8")
