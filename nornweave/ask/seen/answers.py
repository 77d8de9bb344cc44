"""Answers on behalf of one viewer. API, command line and evaluations all ask here, so they get the same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from nornweave.ask.answer.synthesis.synthesizer import StreamedAnswer
from nornweave.ask.answer.text_renderer import render_answer
from nornweave.ask.feedback import FeedbackDocument
from nornweave.ask.fuse.records import Answer, Recalled
from nornweave.ask.pipeline import answer, answer_from
from nornweave.ask.query_path import QueryPath
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.fan_out import Recaller
from nornweave.ask.search.question import Question
from nornweave.ask.seen.agents import check_own
from nornweave.ask.views.answer import FusionResult, answer_document
from nornweave.ask.views.texts import WhyDocument, why_document
from nornweave.ask.why import SoughtPlace, numbers_of, place_in, why
from nornweave.core.access import Viewer
from nornweave.core.errors import GenerationNotKeptError, StoreError
from nornweave.core.types import Domain
from nornweave.disagree.conflicts.records import NO_ORIGINS
from nornweave.index.generations.moves import AsOf


@dataclass(frozen=True, slots=True)
class SeenAnswers:
    """Answers to the questions of a viewer; a question of another viewer is a ``PermissionError``."""

    _path: QueryPath
    _viewer: Viewer

    @property
    def writes_answers(self) -> bool:
        """Whether a model is configured that writes answers."""
        return self._path.settings.fusion.names_a_model

    def answer(self, question: Question) -> Answer:
        """Answer a question from all domains. A domain that is late or fails is a coverage gap.

        ``query``, ``query_text`` and ``query_streamed`` return the same in other forms and raise the same.

        Raises:
            QueryError: a field of the question is wrong.
            GenerationNotKeptError: no domain keeps a generation of the time that is asked for.
            StoreError: the engine is closed.
        """
        check_own(question, self._viewer)
        path = self._path
        elsewhere = path.remote.asked_for(self._viewer) if path.remote else ()
        agents = self._own(elsewhere)
        if question.as_of is not None:
            question = self._then(question, question.as_of)
        try:
            answered = answer(
                question, agents, path.lanes, path.fusion, path.synthesizer, path.notes.read(), elsewhere,
                path.sentence_encoder(),
            )  # fmt: skip
        except RuntimeError as error:  # of the pools, once they are closed
            if not path.is_closing.is_set():
                raise
            raise StoreError("is shutting down; ask again later") from error
        if path.on_answer:
            path.on_answer(answered)
        return answered

    def query(self, question: Question) -> FusionResult:
        """Answer a question as JSON."""
        return answer_document(self.answer(question))

    def why(self, question: Question, sought: SoughtPlace) -> WhyDocument | None:
        """Explain why a place is not in the answer to a question; ``None`` if the viewer can see no such place.

        Raises:
            QueryError: a field of the question is wrong.
            StoreError: a published generation cannot be read.
        """
        check_own(question, self._viewer)
        for domain, agent in self._path.agents.items():
            if sought.domain not in {None, domain}:
                continue
            with agent.generation.using(self._viewer, question.as_of) as (generation, _):
                memo = agent.encoder()
                place = place_in(generation, domain, sought, question.text, memo.encoder if memo else None)
            if place:
                numbers = partial(numbers_of, place=place)
                return why_document(why(question, place, self.answer, lambda asked: agent.rank_of(asked, numbers)))  # noqa: B023
        return None

    def query_text(self, question: Question) -> str:
        """Answer a question as text, with a section for each domain."""
        return render_answer(self.answer(question), self._path.settings.fusion.fusion_max_chars_per_source)

    def query_streamed(self, question: Question) -> StreamedAnswer:
        """Answer a question as JSON without its text, which is written later."""
        synthesizer = self._path.synthesizer
        if question.synthesize:
            synthesizer.prepare()
        answered = self.answer(replace(question, synthesize=False))
        return StreamedAnswer(answer_document(answered), answered, synthesizer)

    def fuse(self, question: Question, recalled: Recalled) -> FusionResult:
        """Fuse any agents' answers to a question; nothing is searched.

        Only viewers who may see everything get authors of lines, because given answers can name any place.

        Raises:
            QueryError: a field of the question is wrong.
        """
        check_own(question, self._viewer)
        notes = self._path.notes.read()
        if not self._may_know_lines():
            notes = replace(notes, origins=NO_ORIGINS)
        path = self._path
        encode = path.sentence_encoder()
        return answer_document(answer_from(question, recalled, path.fusion, path.synthesizer, notes, encode=encode))

    def remember(self, question: Question, document: FusionResult) -> None:
        """Store an answer so that its asker can judge it. This never fails or waits."""
        check_own(question, self._viewer)
        if question.as_of is None:  # what is said of an old answer says nothing of what is published
            self._path.feedback.shown(question, document)

    def feedback(self, query_id: str, chunk_id: str, useful: bool) -> FeedbackDocument | None:
        """Store the viewer's judgment of an item; it is on disk when this returns.

        Returns:
            The stored judgment; ``None`` if no such answer to this viewer is remembered.

        Raises:
            QueryError: the answer did not show the chunk.
            StoreError: the judgment cannot be stored now.
        """
        return self._path.feedback.add(query_id, chunk_id, useful, asker=self._viewer.name)

    def _then(self, question: Question, as_of: AsOf) -> Question:
        """Return the question with the time of ``as_of`` as its present, from which recency is counted."""
        moments, problems = [], []
        for domain, agent in self._path.agents.items():
            if question.domains is None or domain in question.domains:
                try:
                    moments.append(agent.generation.past.at(as_of).published_at or question.now)
                except GenerationNotKeptError as error:
                    problems.append(f"{domain.value}: {error}")
        if not moments:
            raise GenerationNotKeptError("; ".join(problems) or "no domain that is asked is stored here")
        return replace(question, now=as_of if isinstance(as_of, datetime) else max(moments))

    def _own(self, elsewhere: Sequence[Recaller]) -> Mapping[Domain, Agent]:
        """Return the local agents. One without a source or generation is left out if a remote agent has its domain."""
        answered = {agent.domain for agent in elsewhere}
        return {
            domain: agent
            for domain, agent in self._path.agents.items()
            if domain not in answered or agent.generation.name or self._path.settings.sources_of(domain)
        }

    def _may_know_lines(self) -> bool:
        """Tell whether nothing is hidden from the viewer, as far as is known without opening an index."""
        restricted = any(agent.generation.restricted_documents for agent in self._path.agents.values())
        return self._viewer.sees_everything or (self._path.settings.access is None and not restricted)
