"""An engine held in memory that gathers and fuses for real: only what the agents find is made up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from memory_agent import MemoryAgent, memory_citation

from nornweave.ask.agents.directory import RemoteAgents
from nornweave.ask.answer.streamed import StreamedAnswer, to_streamed
from nornweave.ask.answer.synthesis.synthesizer import Synthesizer
from nornweave.ask.answer.text_renderer import render_answer
from nornweave.ask.feedback.book import FeedbackBook, FeedbackDocument
from nornweave.ask.fuse.records import Recalled
from nornweave.ask.search.question import Question
from nornweave.ask.seen.agents import SeenAgents
from nornweave.ask.views import (
    ChunkDocument,
    Deposit,
    DepositDocument,
    DocumentDocument,
    DocumentsDocument,
    FormerDocument,
    FusionResult,
    LedgerDocument,
    LedgerEntryDocument,
    answer_document,
    citation_document,
)
from nornweave.ask.views.evaluations import (
    ComparisonDocument,
    EvaluationsDocument,
    EvaluationsQuery,
    comparison_document,
    evaluations_document,
)
from nornweave.ask.views.status import StatusDocument
from nornweave.ask.views.texts import DocumentStateDocument
from nornweave.config.fusion import FusionSettings
from nornweave.core.access.viewer import Viewer
from nornweave.core.errors import QueryError, SourceUnavailableError, StoreError
from nornweave.core.types import Domain
from nornweave.improve.history_file import HistoryFile
from nornweave.index.inbox_life_cycle import DocumentsQuery, DocumentStatus, ForeignDocumentError
from nornweave.models.encoders.memo import EncoderLoad

THREADS = 16


class MemoryEngine:
    """Agents in memory; started and closed like the real one."""

    def __init__(self, *agents: MemoryAgent, book: FeedbackBook | None = None, history: Path = Path("none")) -> None:
        self.agents: Mapping[Domain, MemoryAgent] = {agent.domain: agent for agent in agents}
        self.calls: list[str] = []
        self.remote: RemoteAgents | None = None
        self.path = SimpleNamespace(remote=None, on_answer=None)
        self.models = SimpleNamespace(encoder_load=lambda: EncoderLoad(0, 0, 0))
        self.questions: list[Question] = []
        self.judged: list[tuple[str, str, bool]] = []
        self.book = book
        self.history = HistoryFile(history)
        self.left_ms: list[int | None] = []
        self.fused: list[Recalled] = []
        self.deposited: list[tuple[Domain, Deposit]] = []
        self.looked_up: list[tuple[str, ...]] = []
        self.settings = FusionSettings()
        self._lock = threading.Lock()
        self._executors: dict[Domain, ThreadPoolExecutor] = {}

    @property
    def writes_answers(self) -> bool:
        return self.settings.names_a_model

    def as_seen_by(self, viewer: Viewer) -> Any:
        """Return the facades; those that take a viewer get this one."""

        def of_viewer(method: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *arguments: method(*arguments, viewer)

        return SimpleNamespace(
            viewer=viewer,
            agents=SeenAgents(self.agents, self.remote, viewer),  # type: ignore[arg-type]
            answers=SimpleNamespace(
                writes_answers=self.writes_answers,
                answer=self.answer,
                query=self.query,
                query_text=self.query_text,
                query_streamed=self.query_streamed,
                remember=self.remember,
                fuse=self.fuse,
                feedback=of_viewer(self.feedback),
            ),
            texts=SimpleNamespace(
                chunk=of_viewer(self.chunk),
                document=of_viewer(self.document),
                former_document=of_viewer(self.former_document),
            ),
            documents=SimpleNamespace(
                status=self.status, page=self.documents, deposit=self.deposit, withdraw=self.withdraw
            ),
            quality=SimpleNamespace(evaluations=self.evaluations, compare=self.compare),
            ledger=SimpleNamespace(conflicts=lambda: self.conflicts(viewer)),
        )

    def start(self, *, wait: bool = True) -> None:
        self.calls.append(f"start wait={wait}")
        self._executors = {domain: ThreadPoolExecutor(THREADS) for domain in self.agents}

    def close(self) -> None:
        self.calls.append("close")
        for executor in self._executors.values():
            executor.shutdown(wait=False, cancel_futures=True)

    def query(self, question: Question) -> FusionResult:
        return answer_document(self.answer(question))

    def query_streamed(self, question: Question) -> StreamedAnswer:
        answered = self.answer(replace(question, synthesize=False))
        return to_streamed(answered, Synthesizer(self.settings), self.settings.fusion_max_chars_per_source)

    def query_text(self, question: Question) -> str:
        return render_answer(self.answer(question), self.settings.fusion_max_chars_per_source)

    def answer(self, question: Question) -> Any:
        from nornweave.ask.pipeline import answer

        with self._lock:
            self.questions.append(question)
            self.left_ms.append(question.deadline.left_ms if question.deadline else None)
        if question.text == "closed":
            raise StoreError("is shutting down; ask again later")
        if question.text == "defect":
            raise KeyError("secret detail of the implementation")
        return answer(question, self.agents, self._executors, self.settings)  # type: ignore[arg-type]

    def remember(self, question: Question, document: FusionResult) -> None:
        if self.book:
            self.book.shown(question, document)

    def feedback(self, query_id: str, chunk_id: str, useful: bool, viewer: Viewer) -> FeedbackDocument | None:
        """Ask the book; without one every answer is remembered but those that are called gone."""
        if self.book:
            return self.book.add(query_id, chunk_id, useful)
        if query_id == "locked":
            raise StoreError("feedback cannot be stored now: database is locked; try again later")
        if query_id == "gone":
            return None
        if chunk_id == "not shown":
            raise QueryError("chunk_id", "'not shown' is not among the 2 items that this answer showed")
        self.judged.append((query_id, chunk_id, useful))
        at = "2026-01-20T10:00:00Z"
        return {"query_id": query_id, "chunk_id": chunk_id, "useful": useful, "at": at, "previous": None}

    def fuse(self, question: Question, recalled: Recalled) -> FusionResult:
        from nornweave.ask.pipeline import answer_from

        with self._lock:
            self.fused.append(recalled)
        return answer_document(answer_from(question, recalled, self.settings))

    def chunk(self, chunk_id: str, viewer: Viewer) -> ChunkDocument | None:
        self.looked_up.append((chunk_id,))
        if chunk_id == "unreadable":
            raise StoreError("gen-000001: cannot be read, roll back or sync again")
        if chunk_id != "chunk-0":
            return None
        domain = next(iter(self.agents))
        return {
            "chunk_id": chunk_id,
            "domain_id": domain.value,
            "content": "def pay(): ...",
            "citation": citation_document(memory_citation(domain, 0)),
            "metadata": {"language": "python"},
            "claims": [],
            "generation": "gen-000001",
        }

    def document(self, domain: Domain, source_id: str, path: str, viewer: Viewer) -> DocumentDocument | None:
        self.looked_up.append((domain.value, source_id, path))
        if source_id != "payments" or path != "src/größe #1/0.py":
            return None
        return {
            "domain_id": domain.value,
            "source_id": source_id,
            "source_path": path,
            "title": None,
            "format": "python",
            "timestamp": "2026-01-20T10:00:00Z",
            "revision": None,
            "url": None,
            "stale": False,
            "metadata": {},
            "text": "def pay(): ...\n",
            "chunks": ["chunk-0"],
            "generation": "gen-000001",
        }

    def evaluations(self, asked: EvaluationsQuery) -> EvaluationsDocument:
        return evaluations_document(self.history, asked)

    def compare(self, domain: Domain, before: str, after: str, set_name: str | None = None) -> ComparisonDocument:
        return comparison_document(self.history, domain, before, after, set_name)

    def former_document(self, chunk_id: str, viewer: Viewer) -> FormerDocument | None:
        if chunk_id != "changed":
            return None
        domain = next(iter(self.agents)).value
        place = {"source_id": "payments", "source_path": "src/größe #1/0.py"}
        return {"domain_id": domain, "generation": "gen-000000", **place}  # type: ignore[typeddict-item]

    def status(self) -> dict[str, StatusDocument]:
        return {domain.value: domain_status(domain) for domain in self.agents}

    def conflicts(self, viewer: Viewer) -> LedgerDocument:
        return {
            "made_at": "2026-01-21T00:00:00Z",
            "generations": {"code": "gen-000001"},
            "open": [ledger_entry("Retry limit", Domain.CODE, Domain.DOCUMENTATION), ledger_entry("webhook timeout")],
            "settled": [ledger_entry("retry delay", Domain.RESEARCH, settled="2026-01-20T00:00:00Z")],
            "notices": [],
        }

    def documents(self, domain: Domain, asked: DocumentsQuery) -> DocumentsDocument:
        state: DocumentStateDocument = {
            "source_path": "runbooks/refunds.md",
            "source_id": "inbox",
            "status": "failed" if asked.status is DocumentStatus.FAILED else "indexed",
            "generation": "gen-000001",
            "reason": None,
            "updated_at": "2026-01-20T10:00:00Z",
            "size": 31,
            "chunks": 1,
        }
        return {"documents": [state][: asked.limit], "next": None}

    def withdraw(self, domain: Domain, source_path: str) -> bool:
        if source_path == "guide.md":
            raise ForeignDocumentError(source_path, ["handbook"])
        return source_path == "runbooks/refunds.md"

    def deposit(self, domain: Domain, documents: Sequence[Deposit], key: str | None = None) -> list[DepositDocument]:
        if documents[0].source_path == "full.md":
            raise SourceUnavailableError("the inbox '/srv/secret/place' cannot be written: No space left on device")
        with self._lock:
            self.deposited += [(domain, document) for document in documents]
        return [_deposited(document) for document in documents]


def domain_status(domain: Domain) -> StatusDocument:
    """Return the status of a domain in which everything went wrong that can."""
    return {
        "generation": "gen-000002",
        "generations": ["gen-000001", "gen-000002"],
        "checked_at": "2026-01-20T10:00:00+00:00",
        "documents": 2,
        "chunks": 4,
        "failed": [{"source_id": "payments", "path": "a.pdf", "reason": "the PDF is encrypted", "stale": True}],
        "held": [{"source_id": "payments", "reason": "9 of 10 documents are gone", "paths": ["b.md", "c.md"]}],
        "unavailable": {"wiki": "no such folder: /srv/wiki"},
        "skipped": [],
        "skip_reasons": {"ignored by .gitignore": 3},
        "runs": [
            {"at": "2026-01-20T10:00:00+00:00", "run_id": "2", "error": "the encoder cannot be loaded"},
            {"at": "2026-01-19T10:00:00+00:00", "run_id": "1", "generation": "gen-000002", "published": True,
             "added": 1, "changed": 2, "removed": 0, "failed": 1, "seconds": 4.2},
        ],
    }  # fmt: skip


def _deposited(document: Deposit) -> DepositDocument:
    if ".." in document.source_path:
        return {"source_path": document.source_path, "status": "REJECTED", "reason": "the path holds '..'"}
    return {"source_path": document.source_path, "status": "ACCEPTED", "reason": None}


def ledger_entry(entity: str, *domains: Domain, settled: str | None = None) -> LedgerEntryDocument:
    """Return an entry of the ledger; between conversations and documentation unless said otherwise."""
    sides = domains or (Domain.CONVERSATIONS, Domain.DOCUMENTATION)
    return {
        "entry_id": entity,
        "entity": entity,
        "attribute": "timeout",
        "detector": "same_entity_divergence",
        "sides": [
            {
                "domain_id": domain.value,
                "source_id": "payments",
                "source_path": "a.md",
                "chunk_id": f"{domain.value}-1",
                "side": "documentation",
                "name": entity,
                "owner": "",
                "value": str(place),
                "unit": "s",
                "statement": f"It is {place} s.",
                "char_range": [0, 9],
                "line_range": None,
                "timestamp": None,
                "updated_at": None,
                "revision": None,
                "author": None,
            }
            for place, domain in enumerate(sides)
        ],
        "also": [],
        "suggested": sides[0].value,
        "reason": "newer",
        "explanation": "0 s and 1 s",
        "confidence": 0.9,
        "first_seen": "2026-01-19T00:00:00Z",
        "settled": settled,
    }
