"""What the API asks of the engine: ``nornweave.ask.engine`` is the one that is served; tests bring their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from nornweave.ask.agents.directory import RemoteAgents
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
from nornweave.models.encoders.memo import EncoderLoad


class AgentPort(Protocol):
    """One domain's memory agent; its methods block and may be called from several threads."""

    @property
    def domain(self) -> Domain:
        """The domain."""

    @property
    def agent_id(self) -> str:
        """The name that responses and coverage gaps carry."""

    @property
    def state(self) -> AgentState:
        """Where it stands in its lifecycle."""

    @property
    def ingestion_problem(self) -> str | None:
        """Why it takes no documents now, ``None`` when it does."""

    def recall(self, question: Question) -> RecallResponse:
        """Answer a question from this domain alone.

        Raises:
            QueryError: the question asks for something that cannot be.
            NoGenerationError: nothing is published yet.
            StoreError: the generation cannot be read.
        """

    def describe(self, viewer: Viewer) -> Mapping[str, JsonValue]:
        """Return what it is: names, chunking, embedding, filters, plan, generation; sizes of what a viewer may see."""

    def facets(self, viewer: Viewer) -> Mapping[str, Sequence[tuple[str, int]]]:
        """Return the most frequent values of each filter that takes one of a few, with how many chunks have them."""

    def health(self, viewer: Viewer) -> Mapping[str, JsonValue]:
        """Return how it is: state, generation, checks, statistics, notices."""


class EnginePort(Protocol):
    """All agents of one process; its methods block and may be called from several threads.

    Attributes:
        on_answer: told of every answer, in the thread that made it.
        remote: agents on other machines; ``None``: none can join.
    """

    on_answer: Callable[[Answer], None] | None
    remote: RemoteAgents | None

    @property
    def agents(self) -> Mapping[Domain, AgentPort]:
        """The served domains, in the order of the enumeration."""

    @property
    def writes_answers(self) -> bool:
        """Whether a model was chosen that writes answers."""

    def start(self, *, wait: bool = True) -> None:
        """Load models and generations, in the background unless ``wait``."""

    def close(self) -> None:
        """Finish what is in flight and refuse the rest."""

    def answer(self, question: Question) -> Answer:
        """Answer a question out of all domains; who is late or fails is a coverage gap.

        Raises:
            QueryError: the question asks for something that cannot be.
            StoreError: the engine is closed.
        """

    def query(self, question: Question) -> FusionResult:
        """Answer a question as JSON; raises as ``answer`` does."""

    def query_text(self, question: Question) -> str:
        """Answer a question as text with a header per source; raises as ``answer`` does."""

    def query_streamed(self, question: Question) -> StreamedAnswer:
        """Answer a question, its text apart; raises as ``query`` does."""

    def encoder_load(self) -> EncoderLoad:
        """Return what the encoders of this process have done and have to do."""

    def remember(self, question: Question, document: FusionResult) -> None:
        """Keep what an answer showed, so that it can be judged; never fails or waits."""

    def feedback(self, query_id: str, chunk_id: str, useful: bool, viewer: Viewer) -> FeedbackDocument | None:
        """Store what a viewer says of an item of an answer to them; it is on disk when this returns.

        Returns:
            What is stored; ``None`` when no such answer is remembered.

        Raises:
            QueryError: the answer did not show the chunk.
            StoreError: it cannot be stored now.
        """

    def evaluations(self, asked: EvaluationsQuery) -> EvaluationsDocument:
        """Return what was measured, newest first.

        Raises:
            StoreError: the history cannot be read.
        """

    def compare(self, domain: Domain, before: str, after: str, set_name: str | None = None) -> ComparisonDocument:
        """Compare two generations of a domain on the judged sets that both were measured with.

        Raises:
            StoreError: the history cannot be read.
        """

    def fuse(self, question: Question, recalled: Recalled) -> FusionResult:
        """Fuse the answers of any agents to a question.

        Raises:
            QueryError: the question asks for something that cannot be.
        """

    def chunk(self, chunk_id: str, viewer: Viewer) -> ChunkDocument | None:
        """Return the text behind a citation, ``None`` when no served domain has it for this viewer.

        Raises:
            StoreError: a generation cannot be read.
        """

    def document(self, domain: Domain, source_id: str, path: str, viewer: Viewer) -> DocumentDocument | None:
        """Return a document as it was ingested, ``None`` when the domain has none there for this viewer.

        Raises:
            StoreError: the generation cannot be read.
        """

    def former_document(self, chunk_id: str, viewer: Viewer) -> FormerDocument | None:
        """Return the document that held a chunk which is not served any more; ``None`` when none is known."""

    def status(self) -> Mapping[str, StatusDocument]:
        """Return per served domain its generations and what its last syncs reported.

        Raises:
            StoreError: it cannot be read.
        """

    def conflicts(self, viewer: Viewer) -> LedgerDocument:
        """Return the conflict ledger, as far as a viewer may see all sides of its entries.

        Raises:
            StoreError: it is damaged.
        """

    def documents(self, domain: Domain, asked: DocumentsQuery) -> DocumentsDocument:
        """Return where the documents of a domain stand, a page of them.

        Raises:
            QueryError: the cursor is none.
            SourceUnavailableError: the inbox cannot be read.
            StoreError: the generation cannot be read.
        """

    def withdraw(self, domain: Domain, source_path: str) -> bool:
        """Take a document out of a domain's inbox; return whether anything is left for the next sync to remove.

        Raises:
            ForeignDocumentError: another source has it.
            SourceUnavailableError: the inbox cannot be written.
        """

    def deposit(self, domain: Domain, documents: Sequence[Deposit], key: str | None = None) -> list[DepositDocument]:
        """Put documents into a domain's inbox; what is accepted is on disk when this returns.

        With a ``key`` that came before, with the same documents, it returns what it returned then.

        Returns:
            What became of each, in order.

        Raises:
            QueryError: the key came with other documents before.
            SourceUnavailableError: the inbox cannot be written.
        """
