"""What only operators see, because it covers all documents: reports of syncs, the inbox, evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from nornweave.ask.search.agent import Agent
from nornweave.ask.views.evaluations import (
    ComparisonDocument,
    EvaluationsDocument,
    comparison_document,
    evaluations_document,
)
from nornweave.ask.views.status import QueryMapDocument, StatusDocument, query_map_document, status_document
from nornweave.ask.views.texts import Deposit, DepositDocument, DocumentsDocument, documents_document
from nornweave.carry.wiring import INBOX, domain_folder
from nornweave.config import Settings
from nornweave.connect.inbox.deposits import ReceiptBook, deposit
from nornweave.core.access import OPERATOR, Viewer
from nornweave.core.errors import NoGenerationError, SourceUnavailableError
from nornweave.core.types import Domain
from nornweave.improve.history import history_of
from nornweave.index.inbox_life_cycle import DocumentsQuery, Shelf
from nornweave.index.outcomes import read_outcomes


@dataclass(frozen=True, slots=True)
class SeenQuality:
    """The history of evaluations. All methods raise ``NotPermittedError`` if the viewer is not an operator."""

    _settings: Settings
    _viewer: Viewer

    def evaluations(self, **asked: Any) -> EvaluationsDocument:
        """Return evaluations, newest first. ``asked`` are arguments of ``EvaluationHistory.evaluations``.

        Raises:
            StoreError: the history cannot be read.
        """
        self._viewer.check_operates()
        return evaluations_document(history_of(self._settings).evaluations(**asked))

    def query_map(self) -> QueryMapDocument | None:
        """Return whether the code domain's query map is in force, and why; ``None`` if no code is served.

        Raises:
            StoreError: the published generation cannot be read.
        """
        self._viewer.check_operates()
        return query_map_document(self._settings, Domain.CODE) if Domain.CODE in self._settings.served_domains else None

    def values(self, evaluation_id: str, stage: str, measure: str) -> dict[str, float]:
        """Return one measure for each query of an evaluation; empty if the values are not kept any more.

        Raises:
            StoreError: the history cannot be read.
        """
        self._viewer.check_operates()
        values = history_of(self._settings).values(evaluation_id).get((stage, measure), {})
        return {query: value for (query, _), value in values.items()}

    def compare(self, domain: Domain, before: str, after: str, set_name: str | None = None) -> ComparisonDocument:
        """Compare two generations of a domain on the judged sets that measured both, or only on ``set_name``.

        Raises:
            StoreError: the history cannot be read.
        """
        self._viewer.check_operates()
        return comparison_document(history_of(self._settings), domain, before, after, set_name)


@dataclass(frozen=True, slots=True)
class SeenDocuments:
    """The state of documents after the last sync.

    All methods raise ``NotPermittedError`` if the viewer is not an operator.
    """

    _settings: Settings
    _agents: Mapping[Domain, Agent]
    _viewer: Viewer

    def status(self) -> dict[str, StatusDocument]:
        """Return for each served domain its generations and the last syncs' reports, with failed paths.

        Raises:
            StoreError: a pointer to a published generation cannot be read.
        """
        self._viewer.check_operates()
        return {domain.value: status_document(self._settings, domain) for domain in self._agents}

    def page(self, domain: Domain, asked: DocumentsQuery) -> DocumentsDocument:
        """Return one page of a domain's documents with their states.

        Raises:
            QueryError: the cursor is not valid.
            SourceUnavailableError: the inbox cannot be read.
            StoreError: the generation cannot be read.
        """
        self._viewer.check_operates()
        with self._shelf(domain) as shelf:
            return documents_document(shelf.page(asked))

    def deposit(self, domain: Domain, documents: Sequence[Deposit], key: str | None = None) -> list[DepositDocument]:
        """Put documents into a domain's inbox. Accepted ones are on disk when this returns.

        Args:
            key: a name for this call. If the same key and documents are sent again, the first outcome is returned
                (``inbox/deposits.py``). ``None`` is no name.

        Raises:
            QueryError: the key was used with other documents before.
            SourceUnavailableError: the inbox cannot be written.
        """
        self._check_takes_documents()
        put = partial(deposit, self._settings.inbox(domain), documents)
        book = ReceiptBook(self._settings.data_dir / "idempotency" / domain.value)
        receipts = put() if key is None else book.once(key, documents, put)
        return [
            {"source_path": receipt.source_path, "status": receipt.status.value, "reason": receipt.reason}
            for receipt in receipts
        ]

    def withdraw(self, domain: Domain, source_path: str) -> bool:
        """Remove a document from a domain's inbox; return whether the next sync has to remove anything.

        Raises:
            ForeignDocumentError: the document belongs to another source.
            SourceUnavailableError: the inbox cannot be written.
        """
        self._check_takes_documents()
        with self._shelf(domain) as shelf:
            return shelf.take_out(source_path)

    def _check_takes_documents(self) -> None:
        self._viewer.check_operates()
        if self._settings.replica_of:
            raise SourceUnavailableError(
                f"this is a replica of {self._settings.replica_of}; hand documents in where it is published"
            )

    @contextmanager
    def _shelf(self, domain: Domain) -> Iterator[Shelf]:
        """Return the list of a domain's documents; before the first generation only those of the inbox."""
        with ExitStack() as stack:
            generation = None
            with suppress(NoGenerationError):
                generation = stack.enter_context(self._agents[domain].generation.use(OPERATOR))
            yield Shelf(
                generation=generation,
                outcomes=read_outcomes(domain_folder(self._settings, domain)),
                root=self._settings.inbox(domain),
                inbox=INBOX,
            )
