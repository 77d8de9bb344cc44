"""The engine on behalf of one viewer: all that a route gets of it. There is no way past it to what is hidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from api.errors import ProblemError
from api.ports import AgentPort, EnginePort
from nornweave.ask.agents.directory import ListedAgent, RemoteAgents
from nornweave.ask.answer.streamed import StreamedAnswer
from nornweave.ask.feedback.book import FeedbackDocument
from nornweave.ask.fuse.records import Answer, Recalled
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import AgentState, RecallResponse
from nornweave.ask.views import (
    ChunkDocument,
    Deposit,
    DepositDocument,
    DocumentDocument,
    DocumentsDocument,
    FormerDocument,
    FusionResult,
    LedgerDocument,
)
from nornweave.ask.views.evaluations import ComparisonDocument, EvaluationsDocument, EvaluationsQuery
from nornweave.ask.views.status import StatusDocument
from nornweave.core.access.viewer import Viewer
from nornweave.core.types import Domain, JsonValue
from nornweave.index.inbox_life_cycle import DocumentsQuery


def check_operates(viewer: Viewer) -> None:
    """Refuse what concerns the whole service to those who only ask.

    Raises:
        ProblemError: 403, the same for everything that is refused.
    """
    if not viewer.operates:
        raise ProblemError(403, "this is for those who operate the service: the service token, or a group of operators")


def check_own(question: Question, viewer: Viewer) -> None:
    """Refuse a question that was made for somebody else, which is a defect.

    Raises:
        PermissionError: it was.
    """
    if question.viewer != viewer:
        raise PermissionError("a question is asked on behalf of somebody else")


@dataclass(frozen=True, slots=True)
class SeenAgent:
    """One domain's agent on behalf of a viewer."""

    _agent: AgentPort
    _viewer: Viewer

    @property
    def domain(self) -> Domain:
        """The domain."""
        return self._agent.domain

    @property
    def agent_id(self) -> str:
        """The name that responses and coverage gaps carry."""
        return self._agent.agent_id

    @property
    def state(self) -> AgentState:
        """Where it stands in its lifecycle."""
        return self._agent.state

    @property
    def ingestion_problem(self) -> str | None:
        """Why it takes no documents now, ``None`` when it does."""
        return self._agent.ingestion_problem

    def recall(self, question: Question) -> RecallResponse:
        """Answer a question from this domain alone; raises as ``AgentPort.recall`` does."""
        check_own(question, self._viewer)
        return self._agent.recall(question)

    def describe(self) -> Mapping[str, JsonValue]:
        """Return what it is, with the sizes of what may be seen."""
        return self._agent.describe(self._viewer)

    def facets(self) -> Mapping[str, Sequence[tuple[str, int]]]:
        """Return the most frequent values of filters, counted over what may be seen."""
        return self._agent.facets(self._viewer)

    def health(self) -> Mapping[str, JsonValue]:
        """Return how it is."""
        return self._agent.health(self._viewer)


class SeenEngine:
    """All agents of one process on behalf of a viewer; raises what ``EnginePort`` does, 403 for what operators do."""

    def __init__(self, engine: EnginePort, viewer: Viewer) -> None:
        self._engine = engine
        self._viewer = viewer

    @cached_property
    def agents(self) -> Mapping[Domain, SeenAgent]:
        """The served domains, in the order of the enumeration."""
        return {domain: SeenAgent(agent, self._viewer) for domain, agent in self._engine.agents.items()}

    @property
    def askable(self) -> tuple[Domain, ...]:
        """The domains that can be asked, here or elsewhere, in the order of the enumeration."""
        joined = {agent.domain for agent in self._engine.remote.asked_for(self._viewer)} if self._engine.remote else ()
        return tuple(domain for domain in Domain if domain in self._engine.agents or domain in joined)

    def joined(self) -> tuple[ListedAgent, ...]:
        """Return the agents on other machines that the viewer is shown."""
        return self._engine.remote.listed_for(self._viewer) if self._engine.remote else ()

    def registry(self) -> RemoteAgents | None:
        """Return where agents on other machines register: for those who may.

        Raises:
            ProblemError: 403; where agents have a token of their own, being able to ask is not enough.
        """
        remote, viewer = self._engine.remote, self._viewer
        if not viewer.registers:
            check_operates(viewer)
            if remote and remote.has_token and not viewer.sees_everything:
                raise ProblemError(403, "agents register with the token of 'agents.registration_token_env'")
        return remote

    @property
    def writes_answers(self) -> bool:
        """Whether a model was chosen that writes answers."""
        return self._engine.writes_answers

    def answer(self, question: Question) -> Answer:
        """Answer a question out of all domains."""
        check_own(question, self._viewer)
        return self._engine.answer(question)

    def query(self, question: Question) -> FusionResult:
        """Answer a question as JSON."""
        check_own(question, self._viewer)
        return self._engine.query(question)

    def query_text(self, question: Question) -> str:
        """Answer a question as text."""
        check_own(question, self._viewer)
        return self._engine.query_text(question)

    def query_streamed(self, question: Question) -> StreamedAnswer:
        """Answer a question, its text apart."""
        check_own(question, self._viewer)
        return self._engine.query_streamed(question)

    def remember(self, question: Question, document: FusionResult) -> None:
        """Keep what an answer showed, so that its asker can judge it."""
        check_own(question, self._viewer)
        self._engine.remember(question, document)

    def fuse(self, question: Question, recalled: Recalled) -> FusionResult:
        """Fuse the answers of any agents to a question."""
        check_own(question, self._viewer)
        return self._engine.fuse(question, recalled)

    def feedback(self, query_id: str, chunk_id: str, useful: bool) -> FeedbackDocument | None:
        """Store what the viewer says of an item of an answer to them."""
        return self._engine.feedback(query_id, chunk_id, useful, self._viewer)

    def chunk(self, chunk_id: str) -> ChunkDocument | None:
        """Return the text behind a citation; ``None`` when there is none for this viewer."""
        return self._engine.chunk(chunk_id, self._viewer)

    def document(self, domain: Domain, source_id: str, path: str) -> DocumentDocument | None:
        """Return a document as it was ingested; ``None`` when there is none for this viewer."""
        return self._engine.document(domain, source_id, path, self._viewer)

    def former_document(self, chunk_id: str) -> FormerDocument | None:
        """Return the document that held a chunk which is not served any more."""
        return self._engine.former_document(chunk_id, self._viewer)

    def conflicts(self) -> LedgerDocument:
        """Return the conflicts of which the viewer may see every side."""
        return self._engine.conflicts(self._viewer)

    def evaluations(self, asked: EvaluationsQuery) -> EvaluationsDocument:
        """Return what was measured, over everything: for operators."""
        check_operates(self._viewer)
        return self._engine.evaluations(asked)

    def compare(self, domain: Domain, before: str, after: str, set_name: str | None = None) -> ComparisonDocument:
        """Compare two generations of a domain, query by query: for operators."""
        check_operates(self._viewer)
        return self._engine.compare(domain, before, after, set_name)

    def status(self) -> Mapping[str, StatusDocument]:
        """Return what syncs reported, paths of failed documents included: for operators."""
        check_operates(self._viewer)
        return self._engine.status()

    def deposit(self, domain: Domain, documents: Sequence[Deposit], key: str | None = None) -> list[DepositDocument]:
        """Put documents into an inbox, which says what is there already: for operators."""
        check_operates(self._viewer)
        return self._engine.deposit(domain, documents, key)

    def documents(self, domain: Domain, asked: DocumentsQuery) -> DocumentsDocument:
        """Return where all documents of a domain stand, failed ones included: for operators."""
        check_operates(self._viewer)
        return self._engine.documents(domain, asked)

    def withdraw(self, domain: Domain, source_path: str) -> bool:
        """Take a document out of an inbox, which says whose it is: for operators."""
        check_operates(self._viewer)
        return self._engine.withdraw(domain, source_path)
