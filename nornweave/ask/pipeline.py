"""The path of a question: choose agents → recall in every domain at once → fuse → fit the budget → synthesise.

``answer`` is the recipe. ``answer_from`` is its second half, for answers that agents have given already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nornweave.ask.answer.context_budget import fit, shown_conflicts, with_quoted
from nornweave.ask.answer.extract import extract
from nornweave.ask.answer.synthesis.prompt import PromptContext
from nornweave.ask.answer.synthesis.synthesizer import Synthesizer
from nornweave.ask.fuse.answerable import judge
from nornweave.ask.fuse.pipeline import Stopwatch, fuse
from nornweave.ask.fuse.records import Answer, Recalled, Synthesis
from nornweave.ask.route import choose_agents, combine_signals, domain_signals
from nornweave.ask.search.fan_out import Recaller, one_a_domain, recall_everywhere, with_elsewhere
from nornweave.ask.search.history import before_pages
from nornweave.ask.search.lanes import Lanes, P
from nornweave.ask.search.query import check_query
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import CoverageGap, RecallResponse
from nornweave.config.workspace import FusionSettings
from nornweave.core.types import Domain
from nornweave.disagree.assertions.alike import SentenceEncoder
from nornweave.disagree.conflicts.records import NO_NOTES, LedgerNotes


def answer(
    question: Question,
    agents: Mapping[Domain, Recaller],
    lanes: Lanes,
    settings: FusionSettings,
    synthesizer: Synthesizer | None = None,
    notes: LedgerNotes = NO_NOTES,
    elsewhere: Sequence[Recaller] = (),
    encode: SentenceEncoder | None = None,
) -> Answer:
    """Answer a question from all agents that can be asked.

    Returns:
        The answer; a domain that could not be searched is a coverage gap.

    Raises:
        QueryError: a field of the question is wrong; nothing is searched then.
    """
    clock = Stopwatch()
    check_query(question.text, question.top_k)
    question = question.focused()
    if question.synthesize and synthesizer:
        synthesizer.prepare()  # loading takes seconds the first time; the domains are asked meanwhile
    chosen = choose_agents(question, one_a_domain(agents, elsewhere), settings.fusion_max_sources)
    asked = with_elsewhere(chosen, elsewhere)
    with clock.step("recall"):
        responses, gaps = recall_everywhere(question, asked, lanes)
        responses = before_pages(question.text, responses)
    recalled = to_recalled(question, asked, responses, gaps)
    return answer_from(question, recalled, settings, synthesizer, notes, clock, encode)


def answer_from(
    question: Question,
    recalled: Recalled,
    settings: FusionSettings,
    synthesizer: Synthesizer | None = None,
    notes: LedgerNotes = NO_NOTES,
    clock: Stopwatch | None = None,
    encode: SentenceEncoder | None = None,
) -> Answer:
    """Return one answer that is made from given answers of agents; nothing is searched.

    Args:
        synthesizer: writes a text if the question asks for one; ``None`` if no model is configured.
        clock: measures the stages; ``None`` starts a new one.
        encode: encodes sentences, to find conflicts between sentences in other words; ``None`` compares words alone.
    """
    clock = clock or Stopwatch()
    fused = fuse(question, recalled, settings, notes=notes, clock=clock, encode=encode)
    with clock.step("budget"):
        items, conflicts = shown_conflicts(fit(fused.items, question), fused.conflicts)
    answerable = judge(question, recalled.responses, [(each.item, each.score) for each in items])
    with clock.step("extract"):
        best = extract(items, question.text) if answerable.may_answer or not answerable.is_doubtful else ()
    items = with_quoted(items, best, question.text)
    answerable = replace(answerable, is_quoted=bool(best) or not items)
    context = PromptContext(question.text, items, conflicts, recalled.coverage_gaps, answerable.doubt)
    return Answer(
        question=question,
        recalled=recalled,
        fused=fused,
        items=items,
        extract=() if answerable.is_doubtful else best,
        nearest=best if answerable.is_doubtful else (),
        conflicts=conflicts,
        answerable=answerable,
        synthesis=_synthesise(question, context, synthesizer),
        stage_latency_ms=clock.milliseconds,
        total_latency_ms=clock.total_ms,
    )


def to_recalled(
    question: Question,
    agents: Mapping[P, Recaller],
    responses: Mapping[P, RecallResponse],
    gaps: tuple[CoverageGap, ...] = (),
) -> Recalled:
    """Return the agents' answers together with how strongly the question concerns each domain.

    The signal of a domain comes from the question's words and, if the domain's scores are calibrated, also from how
    well the domain answered. Other scores do not compare between domains.
    """
    evidence: dict[Domain, float] = {}
    for key, response in responses.items():
        if response.items and (response.calibrated or isinstance(key, Domain)):
            domain = Domain(response.domain_id)
            score = min(max(response.items[0].score, 0.0), 1.0)
            evidence[domain] = max(evidence.get(domain, 0.0), score)
    asked: dict[str, str] = {}
    for agent in agents.values():
        asked.setdefault(agent.domain.value, agent.agent_id)
    signals = combine_signals(domain_signals(question.text), evidence)
    return Recalled(
        asked=asked,
        responses=tuple(responses.values()),
        coverage_gaps=gaps,
        domain_signals={domain.value: signal for domain, signal in signals.items()},
    )


def _synthesise(question: Question, context: PromptContext, synthesizer: Synthesizer | None) -> Synthesis | None:
    """Return a model's answer, or a ``Synthesis`` with the reason why there is none.

    The result is ``None`` if the question does not ask for a model's answer.
    """
    if not question.synthesize:
        return None
    if synthesizer is None:
        return Synthesis(text=None, reason="no model is configured")
    if not context.items:
        return Synthesis(text=None, reason="nothing was found to write about")
    timeout_ms = question.deadline.left_ms if question.deadline else None
    return synthesizer.synthesize(context, timeout_ms=timeout_ms)
