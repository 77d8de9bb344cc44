"""The texts behind citations and the conflict ledger, as far as one viewer may see them."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from nornweave.ask.search.agent import Agent
from nornweave.ask.search.history import about_numbers, commit_of, numbers_of
from nornweave.ask.search.records import FindQuery
from nornweave.ask.uses import check_name, draw_graph, find_uses
from nornweave.ask.views.ledger import DismissedDocument, LedgerDocument, ledger_document
from nornweave.ask.views.shaping import in_shape
from nornweave.ask.views.texts import (
    ChunkDocument,
    CompletionDocument,
    CompletionsDocument,
    DocumentDocument,
    FindDocument,
    GraphDocument,
    HeadingDocument,
    LineMatchDocument,
    UsesDocument,
    chunk_document,
    document_document,
)
from nornweave.ask.why import chunks_at
from nornweave.carry.ledger_file import dismiss, load_ledger, published
from nornweave.config import Settings
from nornweave.core.access import Viewer
from nornweave.core.errors import QueryError, StoreError
from nornweave.core.text.terminal import lines_of
from nornweave.core.types import NO_METADATA, Domain
from nornweave.disagree.ledger import Place, seen_ledger
from nornweave.index.index import Index
from nornweave.index.port import Mask
from nornweave.index.records import StoredChunk
from nornweave.index.searching.conditions import AtPath
from nornweave.index.searching.finding import BEFORE_CHARACTERS, SHOWN_CHARACTERS, Completion, LineMatch, LinePattern
from nornweave.read.blocks.reader import CONVERTED, FORMATS, shown_text

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SeenLedger:
    """Conflicts whose sides the viewer may all see."""

    _settings: Settings
    _agents: Mapping[Domain, Agent]
    _viewer: Viewer

    def conflicts(self) -> LedgerDocument:
        """Return the ledger of the last publication.

        Raises:
            StoreError: the ledger is damaged.
        """
        ledger = load_ledger(self._settings)
        if ledger is not None and not self._viewer.sees_everything:
            ledger = seen_ledger(ledger, self._seen_places)
        return ledger_document(ledger, published(self._settings))

    def dismiss(self, conflict_id: str, *, undo: bool) -> DismissedDocument:
        """Dismiss a conflict, or take the dismissal back.

        Raises:
            QueryError: no conflict has this id, or it is not dismissed.
            StoreError: the decision cannot be stored.
        """
        return {"id": dismiss(self._settings, conflict_id, undo=undo), "dismissed": not undo}

    def _seen_places(self, domain: str, places: Collection[Place]) -> Collection[Place]:
        """Return the documents among ``places`` that the viewer may see; empty if the domain cannot be read."""
        agent = self._agents.get(Domain(domain))
        if agent is None:
            return ()
        try:
            if agent.generation.sees_all(self._viewer):
                return places
            with agent.generation.use(self._viewer) as generation:
                return generation.seen_places(places)
        except StoreError as error:
            log.warning("%s: %s", domain, error)
            return ()


MOST_ABOUT = 20


@dataclass(frozen=True, slots=True)
class SeenTexts:
    """Chunks and documents that the viewer may see."""

    _settings: Settings
    _agents: Mapping[Domain, Agent]
    _viewer: Viewer

    def chunk(self, chunk_id: str) -> ChunkDocument | None:
        """Return the text behind a citation, from any domain; ``None`` if the viewer can see no such chunk."""
        for domain, agent in self._agents.items():
            with _readable(domain), agent.generation.use(self._viewer) as generation:
                chunk = generation.chunk(chunk_id)
                if chunk:
                    name, known = generation.meta["generation"], agent.freshness
                    at = known.verified_at(name, chunk.source_id, chunk.path) if known else None
                    stored = generation.document(chunk.source_id, chunk.path)
                    said = stored.metadata if stored and stored.revision else NO_METADATA
                    commit = commit_of(generation, chunk, str(said.get("brought_by") or ""))
                    return chunk_document(domain, chunk, name, at, commit, self._about(chunk), said)
        return None

    def _about(self, chunk: StoredChunk) -> list[tuple[Domain, StoredChunk]]:
        """Return at most ``MOST_ABOUT`` threads that a commit concerns, or commits that a thread concerns."""
        repository, numbers = numbers_of(chunk)
        found = list[tuple[Domain, StoredChunk]]()
        for domain, agent in self._agents.items() if numbers else ():
            with _readable(domain), agent.generation.use(self._viewer) as generation:
                told = about_numbers(generation, repository, numbers)
                found += [(domain, each) for each in told if each.document_id != chunk.document_id]
        return found[:MOST_ABOUT]

    def document(self, domain: Domain, source_id: str, path: str) -> DocumentDocument | None:
        """Return a document as it was ingested; ``None`` if it is not served to this viewer.

        Raises:
            StoreError: the published generation cannot be read.
        """
        if domain not in self._agents:
            return None
        with self._agents[domain].generation.use(self._viewer) as generation:
            stored = generation.document(source_id, path)
            if stored is None:
                return None
            return document_document(domain, source_id, path, stored, generation.meta["generation"])

    def outline(self, document: DocumentDocument) -> list[HeadingDocument]:
        """Return the headings of a document's chunks, in order. Neighbouring chunks with one heading give one entry."""
        with self._agents[Domain(document["domain_id"])].generation.use(self._viewer) as generation:
            chunks = chunks_at(generation, document["source_id"], document["source_path"])
        found = sorted(chunks.values(), key=lambda chunk: chunk.char_range)
        named = groupby(found, key=lambda chunk: chunk.title or document["source_path"].rpartition("/")[2])
        first = ((title, next(group)) for title, group in named)
        return [
            {"title": title, "line": chunk.line_range[0] or None, "chunk_id": chunk.chunk_id} for title, chunk in first
        ]

    def file_of(self, chunk: ChunkDocument) -> Path | None:
        """Return the local folder with the PDF file of a chunk; ``None`` for other chunks."""
        citation = chunk["citation"]
        if citation["page"] is None or not citation["source_path"].lower().endswith(".pdf"):
            return None
        sources = (source for source in self._settings.sources if source.id == citation["source_id"])
        return next((source.path for source in sources if source.type == "files"), None)

    def find(self, query: FindQuery, deadline: float) -> FindDocument:
        """Return the lines of local documents that match a text or a regular expression and are found in time.

        Raises:
            QueryError: the expression or a filter is wrong.
            NoGenerationError, StoreError: none of the domains can be read.
        """
        document: FindDocument = {"matches": [], "hidden": 0, "truncated": False, "not_searched": []}
        errors: list[StoreError] = []
        agents = [agent for domain, agent in self._agents.items() if not query.domains or domain in query.domains]
        for agent in agents:
            left = query.limit - len(document["matches"])
            conditions = [*agent.conditions(query.filters), *([AtPath(query.document)] if query.document else [])]
            try:
                with agent.generation.use(self._viewer) as generation:
                    within = generation.within(conditions) if conditions else None
                    shown, hidden, is_complete = _find_shown(generation, query.pattern, left, deadline, within)
            except StoreError as error:
                errors.append(error)
                document["not_searched"].append({"domain_id": agent.domain.value, "reason": str(error)})
                continue
            document["matches"] += [
                in_shape(LineMatchDocument, match, domain_id=agent.domain.value, source_path=match.path)
                for match in shown
            ]
            document["hidden"] += hidden
            document["truncated"] = document["truncated"] or not is_complete
        if errors and len(errors) == len(agents):
            raise errors[0]
        return document

    def uses(self, name: str, deadline: float, source_id: str | None = None) -> UsesDocument:
        """Return the uses of a name in the local code domain, or only in the source ``source_id``.

        Raises:
            QueryError: the text cannot be a name in code, or the code domain is not served.
            NoGenerationError, StoreError: the code domain cannot be read.
        """
        check_name(name)
        agent = self._code()
        with agent.generation.use(self._viewer) as generation:
            within = generation.within(agent.conditions({"source": source_id})) if source_id else None
            return find_uses(generation, name, deadline, within)

    def graph(self, path: str, deadline: float, source_id: str | None = None) -> GraphDocument | None:
        """Return the imports of a file of code and the files that import it; raises as ``uses``.

        The result is ``None`` if the viewer can see no such file.
        """
        agent = self._code()
        with agent.generation.use(self._viewer) as generation:
            return draw_graph(
                generation, path, source_id, deadline,
                lambda source: generation.within(agent.conditions({"source": source})),
            )  # fmt: skip

    def _code(self) -> Agent:
        if Domain.CODE not in self._agents:
            raise QueryError("domain", "the code domain is not served here")
        return self._agents[Domain.CODE]

    def complete(self, typed: str, limit: int) -> CompletionsDocument:
        """Return at most ``limit`` completions of typed text. Domains that cannot be read are left out."""
        found: list[tuple[Completion, Domain]] = []
        for domain, agent in self._agents.items():
            with _readable(domain), agent.generation.use(self._viewer) as generation:
                found += [(completion, domain) for completion in generation.complete(typed, limit)]
        best = sorted(found, key=lambda each: each[0].order)[:limit]
        return {"completions": [in_shape(CompletionDocument, each, domain_id=domain.value) for each, domain in best]}


_Lines: TypeAlias = tuple[list[str], list[str]]
"""The lines of a document as they are stored, and without hidden text."""


def _find_shown(
    generation: Index, pattern: LinePattern, limit: int, deadline: float, within: Mask | None
) -> tuple[list[LineMatch], int, bool]:
    """Return the first matches in shown text, the number of matches in hidden text, and whether all were found."""
    wanted, texts = limit, dict[tuple[str, str], _Lines]()
    while True:
        found = generation.find(pattern, wanted, deadline, within)
        shown = list(_shown(generation, found.matches, pattern, texts))
        hidden = len(found.matches) - len(shown)
        if found.is_complete or not hidden or len(shown) >= limit or time.monotonic() >= deadline:
            return shown[:limit], hidden, found.is_complete and len(shown) <= limit
        wanted *= 2


def _shown(
    generation: Index, matches: Iterable[LineMatch], pattern: LinePattern, texts: dict[tuple[str, str], _Lines]
) -> Iterator[LineMatch]:
    """Yield the matches in text that readers of the document see, without the hidden parts of their lines.

    Args:
        texts: a cache: source and path → the document's lines. Documents that are read here are added to it.
    """
    said = "" if pattern.is_regex else pattern.expression.casefold()
    for match in matches:
        at = match.source_id, match.path
        if not match.is_quoted and at not in texts:
            stored = generation.document(*at)
            is_read = stored is not None and stored.format in FORMATS | CONVERTED
            both = (stored.text, shown_text(stored.text, stored.format)) if stored and is_read else ("", "")
            texts[at] = lines_of(both[0]), lines_of(both[1])
        whole, seen = ("", "") if match.is_quoted else (lines[match.line - 1 :][:1] for lines in texts[at])
        if whole == seen:
            yield match
        elif seen[0].strip() and said in seen[0].casefold():
            start = max(0, seen[0].casefold().find(said) - BEFORE_CHARACTERS)
            yield replace(match, text=seen[0][start : start + SHOWN_CHARACTERS])


@contextmanager
def _readable(domain: Domain) -> Iterator[None]:
    """Log an unreadable domain and continue with the next."""
    try:
        yield
    except StoreError as error:
        log.warning("%s: %s", domain.value, error)
