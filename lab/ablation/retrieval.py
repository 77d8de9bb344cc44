"""What judged sets lose without each part of retrieval that a plan decides, and what they gain with what is off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from evals.judgments import JudgedSet
from evals.results import Scope
from evals.runs import SetToRun, evaluate_all
from lab.ablation.measuring import without
from lab.ablation.targets import Target
from lab.baseline.measuring import Corpus, example_corpus, shared_corpus
from nornweave.ask.engine import Engine
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.heuristics import HEURISTICS
from nornweave.config import PlanSettings, load_settings
from nornweave.improve.records import LAST_STAGE

MEASURES = ("Recall@10", "RR@10")
_EXPAND = "nornweave.ask.search.expand"
_KINDS = {"acronyms of the list": "_acronyms", "acronyms by initials": "_initials"}
_MORE = {"identifiers": "_identifiers", "synonyms": "_synonyms", "keywords of errors": "_keywords"}
_SOURCES = ("dense", "sparse", "fulltext", "structured")

Change = Callable[[PlanSettings], PlanSettings]


def _plan(**changes: object) -> Change:
    return lambda plan: plan.model_copy(update=changes)


AS_IT_IS = _plan()


def _without_source(name: str) -> Change:
    def change(plan: PlanSettings) -> PlanSettings:
        weights, literal = (each.model_copy(update={name: 0.0}) for each in (plan.weights, plan.literal_weights))
        return plan.model_copy(update={"weights": weights, "literal_weights": literal})

    return change


@dataclass(frozen=True, slots=True)
class Variant:
    """One other way to retrieve.

    Attributes:
        name: in the table.
        plan: changes each domain's plan.
        removed: functions that are taken out.
        numbers: of the heuristics.
    """

    name: str
    plan: Change = AS_IT_IS
    removed: Sequence[Target] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)


def variants() -> Iterator[Variant]:
    """Yield what is tried: what ships first, then expansion, heuristics and the dimensions that are tuned."""
    yield Variant("as it ships")
    for name, function in _KINDS.items():
        yield Variant(f"without {name}", removed=[(_EXPAND, function)])
    yield Variant("with every expansion", _plan(expand=True))
    for name, function in _MORE.items():
        yield Variant(f"with every expansion but {name}", _plan(expand=True), [(_EXPAND, function)])
    yield Variant("with heuristics", _plan(heuristics=True))
    for one in HEURISTICS:
        yield Variant(f"with heuristics but {one.name}", _plan(heuristics=True), numbers={one.setting: 0.0})
    for name in _SOURCES:
        yield Variant(f"without {name}", _without_source(name))
    yield Variant(
        "literal queries weighted as others", lambda plan: plan.model_copy(update={"literal_weights": plan.weights})
    )
    yield Variant("reciprocal rank fusion", _plan(combine="rrf"))
    yield Variant("document_share 0", _plan(document_share=0.0))
    yield Variant("function_words 1", _plan(function_words=1.0))
    yield Variant("k1 2, b 0.5", _plan(k1=2.0, b=0.5))


def retrieval_table(
    shared: Path | None, keep: Path, tell: Callable[[str], None], *, queries: int | None = None
) -> Iterator[str]:
    """Yield the lines of a table: variant, and for each judged set in its domain how Recall@10 and MRR change.

    Args:
        shared: folder of judged sets from elsewhere.
        keep: folder for the indexes; their vectors are used again.
        tell: told what is measured.
        queries: at most so many of each set, evenly spread over it; all unless given.
    """
    corpora = [example_corpus(), *([shared_corpus(shared)] if shared else [])]
    figures: dict[str, dict[str, tuple[float, ...]]] = {}
    for corpus in corpora:
        for variant, measured in _measured(corpus, keep / corpus.name.replace(" ", "-"), tell, queries):
            figures.setdefault(variant, {}).update(measured)
    whole, *others = figures
    names = list(figures[whole])
    yield f"| | {' | '.join(names)} |"
    yield f"|---|{'---|' * len(names)}"
    yield f"| {whole} | {' | '.join('{:.4f} / {:.4f}'.format(*figures[whole][name]) for name in names)} |"
    for variant in others:
        cells = (_changed(figures[whole][name], figures[variant][name]) for name in names)
        yield f"| {variant} | {' | '.join(cells)} |"


def _measured(
    corpus: Corpus, folder: Path, tell: Callable[[str], None], queries: int | None
) -> Iterator[tuple[str, dict[str, tuple[float, ...]]]]:
    settings = load_settings(corpus.index(folder), {})
    sets = [SetToRun(_sampled(one, queries)) for one in corpus.sets if not one.across_domains]
    with Engine(settings, watch=False) as engine:
        shipped = dict(engine.agents)
        for variant in variants():
            tell(f"{corpus.name}: {variant.name}")
            engine.agents = {domain: _changed_agent(agent, variant) for domain, agent in shipped.items()}
            with ExitStack() as stack:
                for target in variant.removed:
                    stack.enter_context(without(target))
                results = evaluate_all(engine, sets, scopes=(Scope.DOMAIN,))
            yield variant.name, {one.name: _means(one.scopes[0].stage(LAST_STAGE)) for one in results}
        engine.agents = shipped


def _sampled(judged: JudgedSet, limit: int | None) -> JudgedSet:
    step = 1 if limit is None else -(-len(judged.queries) // limit)
    queries = judged.queries[::step]
    ids = {query.id for query in queries}
    return replace(judged, queries=queries, judgments=tuple(one for one in judged.judgments if one.query_id in ids))


def _changed_agent(agent: Agent, variant: Variant) -> Agent:
    changed = agent.with_plan(variant.plan(agent.settings.plan))
    if variant.numbers:
        reranking = agent.settings.reranking
        numbers = reranking.heuristics.model_copy(update=dict(variant.numbers))
        reranking = reranking.model_copy(update={"heuristics": numbers})
        changed.settings = changed.settings.model_copy(update={"reranking": reranking})
    return changed


def _means(stage: object) -> tuple[float, ...]:
    metrics = getattr(stage, "metrics", {})
    return tuple(metrics[name].mean for name in MEASURES)


def _changed(before: Sequence[float], after: Sequence[float]) -> str:
    if all(abs(one - other) < 5e-5 for one, other in zip(before, after, strict=True)):
        return "="
    return " / ".join(f"{other - one:+.4f}" for one, other in zip(before, after, strict=True))
