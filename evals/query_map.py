"""Learn a domain's query map from its commits, and test it through the whole path of a question.

A commit's first line stands for a question, and the files that it changed for its answer. Files are as they are now,
not as they were before the commit: a text that the commit added may match its message.

The map is a linear one of query vectors, learnt from questions and their answers without input or output.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from evals.judgments import JudgmentError, JudgmentOrigin
from evals.results import ResultScope, SetResult
from evals.runs import Progress, evaluate
from evals.searching import PathSearcher
from evals.sets import configured_sets
from nornweave.ask.engine import Engine
from nornweave.ask.search.agent import Agent
from nornweave.carry.publishing import publish_after_sync
from nornweave.carry.wiring import domain_folder, pull, store_of
from nornweave.config import Settings
from nornweave.connect.git.history import is_program
from nornweave.core.access import OPERATOR
from nornweave.core.errors import QueryError
from nornweave.core.types import COMMIT, RELEASE, Domain
from nornweave.improve.comparison import compare
from nornweave.improve.records import LAST_STAGE
from nornweave.index.index import Index
from nornweave.index.manifest import TURNED_OFF, QueryMap, QueryMapReport, factors_of, read_report, write_report
from nornweave.index.port import Numbers, Vectors

LEAST = 20
"""Fewer examples teach nothing."""
MOST = 1_000
"""The newest so many count: they teach as much as all, in seconds."""
MOST_FILES = 10
"""A commit that changed more says of none of them what it is about."""
MOST_PASSAGES = 8_000
BLOCKS = 3
"""So many newest fifths are tested, each with a map of what is older: one alone is too few to tell gain from chance."""
HIT, DEPTH = 3, 30
ALPHA = 0.05
"""How probable a gain may at most be by chance to count, one-sided."""
MOST_LOSS = 0.003
"""What a judged set may lose of a measure."""
_NUMBERS = re.compile(r"\d+")
GUARDED = ("Recall@10", "RR@10")
WEEK, NEW_COMMITS = timedelta(days=7), 50
Place: TypeAlias = tuple[str, str]
"""A source and a path."""

STEPS, RATE = 200, 1e-3
TEMPERATURE = 0.05
PULL = 0.02
"""What a squared difference from identity costs: of a few hundred examples each direction is seen a few times."""
STAY = 3.0
"""What it costs to move the passages themselves, were they asked for: questions that sound like code stay as they are.

Without it commits gain as much, and questions made out of docstrings lose (docs/decisions/0041-query-map.md).
"""
HARD, RANDOM = 16, 64
"""Passages that each question is told apart from: those nearest to it, and as many drawn for all questions together."""
LOOK_AGAIN = 10
"""Steps after which the nearest passages are looked for anew."""
SEED = 20240229
_SMALLEST = 1e-8


@dataclass(frozen=True, slots=True)
class Example:
    """A commit as question and answer."""

    text: str
    files: tuple[Place, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """The training data of a map.

    Attributes:
        examples: oldest first.
        places: of the files that commits can change.
        queries: the vectors of the examples' texts.
        passages: vectors of passages of files; of very many the first ones of each file.
        answers: per example the rows of ``passages`` of the files that it changed.
        newest: when the newest example was made, ISO 8601; empty without one.
    """

    examples: tuple[Example, ...]
    places: frozenset[Place]
    queries: Vectors
    passages: Vectors
    answers: tuple[Numbers, ...]
    encoder: str
    newest: str

    def map_of(self, rows: Sequence[int], answers: Sequence[int] | None = None) -> QueryMap:
        """Learn a map from some examples. ``answers`` gives each example another one's answer, for a control."""
        given = [self.answers[row] for row in (rows if answers is None else answers)]
        shape, factors = factors_of(fit(self.queries[list(rows)], self.passages, given))
        return QueryMap(
            encoder=self.encoder,
            shape=shape,
            factors=factors,
            examples=len(rows),
            fitted_at=datetime.now(UTC).isoformat(),
        )


def lessons_of(agent: Agent) -> Lessons:
    """Return the training data in the published commits of a domain.

    Commits by programs are left out, and commits with no published file or with more than ``MOST_FILES``.

    Raises:
        EncoderError, StoreError: the encoder cannot be used, or nothing that is published can be read.
    """
    memo = agent.encoder()
    with agent.generation.use(OPERATOR) as index:
        dated, files = _examples(index)
        examples = tuple(example for *_, example in dated[-MOST:])
        if memo is None or not examples:
            return Lessons((), frozenset(files), np.zeros((0, 1), np.float32), np.zeros((0, 1), np.float32), (), "", "")
        changed = {place for example in examples for place in example.files}
        chunks = sorted(
            (place not in changed, position, number, place)
            for place, numbers in files.items()
            for position, number in enumerate(numbers)
        )[:MOST_PASSAGES]
        rows: dict[Place, list[int]] = {}
        for row, (*_, place) in enumerate(chunks):
            rows.setdefault(place, []).append(row)
        return Lessons(
            examples=examples,
            places=frozenset(files),
            queries=np.stack([memo.encode(example.text).vector for example in examples]),
            passages=index.vectors(np.array([number for _, _, number, _ in chunks], np.int32)),
            answers=tuple(
                np.array([row for place in example.files for row in rows[place]], np.int32) for example in examples
            ),
            encoder=index.meta["encoder"],
            newest=dated[-1][0],
        )


def _examples(index: Index) -> tuple[tuple[tuple[str, str, Example], ...], Mapping[Place, list[int]]]:
    """Return all examples with moment and commit, oldest first, and the chunks of each file.

    Of commits with the same message except for numbers the newest is used.
    """
    files: dict[Place, list[int]] = {}
    titles: dict[Place, str] = {}
    for chunk in index.chunk_places():
        place = (chunk.source_id, chunk.path)
        if chunk.format == COMMIT:
            titles.setdefault(place, chunk.title or "")
        elif chunk.format != RELEASE:
            files.setdefault(place, []).append(chunk.chunk_no)
    moments = {(each.source_id, each.path): each.updated_at or "" for each in index.served_documents(("", ""), 1 << 30)}
    examples = []
    for commit in index.stated_documents(("changed",)):
        place = (commit.source_id, commit.path)
        changed, author = commit.metadata.get("changed"), commit.metadata.get("author")
        if place in titles and isinstance(changed, list | tuple) and not is_program(str(author)):
            known = ((commit.source_id, str(path)) for path in dict.fromkeys(changed))
            held = tuple(each for each in known if each in files)
            if 0 < len(held) <= MOST_FILES:
                examples.append((moments.get(place, ""), commit.path, Example(titles[place], held)))
    examples.sort(key=lambda each: each[:2])
    # "Bump version to 2.1" each month is one question: counted each time, it would be beyond chance by itself.
    newest = {_NUMBERS.sub("0", each[2].text.casefold()): each for each in examples}
    return tuple(sorted(newest.values(), key=lambda each: each[:2])), files


def trial(engine: Engine, domain: Domain, lessons: Lessons, *, shuffled: bool = False) -> dict[str, float]:
    """Ask each of the newest commits with a map learnt from older ones, as a user asks the domain.

    Args:
        shuffled: learn from the same commits with each other's files, as a control.

    Returns:
        For each commit number: 1 if a file that it changed is among the first three, else 0.
    """
    count = len(lessons.examples)
    ends = [count * (5 - BLOCKS + block) // 5 for block in range(BLOCKS + 1)]
    hits: dict[str, float] = {}
    for start, end in pairwise(ends):
        answers = np.random.default_rng(SEED).permutation(start).tolist() if shuffled else None
        hits |= hits_of(engine, domain, lessons, lessons.map_of(range(start), answers), range(start, end))
    return hits


def hits_of(
    engine: Engine, domain: Domain, lessons: Lessons, query_map: QueryMap | None, rows: Iterable[int]
) -> dict[str, float]:
    """Ask commits with a map, or with none; returns hits as ``trial``. Commits in the results are skipped."""
    searcher, hits = _searcher(engine, domain, query_map), dict[str, float]()
    for row in rows:
        example = lessons.examples[row]
        try:
            found = searcher.rankings(example.text, domains=[domain], filters={}, depth=DEPTH).stages[LAST_STAGE]
        except QueryError:
            continue
        files = dict.fromkeys((each.source_id, each.source_path) for each in found)
        first = [place for place in files if place in lessons.places][:HIT]
        hits[str(row)] = float(not set(first).isdisjoint(example.files))
    return hits


def _searcher(engine: Engine, domain: Domain, query_map: QueryMap | None) -> PathSearcher:
    agent = engine.agents[domain].altered(query_map_of=lambda _: query_map)
    return PathSearcher(replace(engine.path, agents={**engine.agents, domain: agent}))


def learn(engine: Engine, domain: Domain, settings: Settings, progress: Progress | None = None) -> QueryMapReport:
    """Learn a domain's map and decide whether it is used. Nothing is published.

    It is used if commits newer than its training data gain beyond chance, and no judged set loses more than
    ``MOST_LOSS`` with the map that is learnt from all commits.
    """
    at = datetime.now(UTC).isoformat()
    if not settings.domains[domain].plan.query_map:
        return QueryMapReport(reason=TURNED_OFF, at=at)
    lessons = lessons_of(engine.agents[domain])
    count = len(lessons.examples)
    report = QueryMapReport(reason="", at=at, examples=count, newest=lessons.newest)
    if count < LEAST:
        return replace(report, reason=f"{count} commits say what they changed in files that are indexed; {LEAST} teach")
    mapped = trial(engine, domain, lessons)
    without = hits_of(engine, domain, lessons, None, map(int, mapped))
    gained = compare(mapped, without)  # this way round a gain by the map is a drop, of which the chance is known
    if gained is None:
        return replace(report, reason="none of the newer commits can be asked for")
    report = replace(
        report,
        tested=gained.queries,
        gain=round(-gained.difference, 4),
        interval=(round(-gained.high, 4), round(-gained.low, 4)),
    )
    said = (
        f"a changed file is among the first {HIT} for {gained.before:.3f} of {gained.queries} newer commits with it, "
        f"for {gained.after:.3f} without"
    )
    if gained.p_drop >= ALPHA or gained.difference >= 0:
        return replace(report, reason=f"{said}: not beyond chance (p {gained.p_drop:.3f})")
    query_map = lessons.map_of(range(count)).model_copy(
        update={"tested": gained.queries, "before": gained.after, "after": gained.before}
    )
    try:
        lost = losses(engine, domain, settings, query_map, progress)
    except JudgmentError as error:
        return replace(report, reason=f"{said}; the judged sets cannot be run: {error}")
    if lost:
        return replace(report, reason=f"{said}; but {'; '.join(lost)}")
    return replace(report, reason=said, query_map=query_map, learnt_at=query_map.fitted_at)


def losses(
    engine: Engine, domain: Domain, settings: Settings, query_map: QueryMap, progress: Progress | None = None
) -> tuple[str, ...]:
    """Return sentences about judged sets that lose with a map, with scope and figures.

    Raises:
        JudgmentError: a set is broken, or none of its documents is published.
    """
    lost: list[str] = []
    for to_run in configured_sets(settings, engine):
        own = (ResultScope.DOMAIN,) if to_run.domains in {(), (domain,)} else ()
        before, after = (
            evaluate(
                _searcher(engine, domain, using),
                to_run.judged,
                domains=to_run.domains,
                scopes=(*own, ResultScope.EVERYWHERE),
                progress=progress,
            )
            for using in (None, query_map)
        )
        lost += _losses(before, after)
    return tuple(lost)


def _losses(before: SetResult, after: SetResult) -> Iterator[str]:
    """Yield a set's losses. For a generated set, losses within chance are allowed."""
    is_made = before.origin is JudgmentOrigin.GENERATED
    for run in before.scopes:
        then, now = run.stage(LAST_STAGE), (other := after.scope(run.scope)) and other.stage(LAST_STAGE)
        for measure in GUARDED if then and now else ():
            assert then
            assert now
            lost = compare(then.metrics[measure].values, now.metrics[measure].values)
            if lost and -lost.difference > MOST_LOSS and (not is_made or lost.p_drop < ALPHA):
                yield f"{before.name} ({run.scope.value}) loses: {measure} {lost.before:.3f} → {lost.after:.3f}"


def learn_published(
    settings: Settings, domain: Domain, run_id: str, progress: Progress | None = None, *, wait_s: float = 60.0
) -> QueryMapReport:
    """Learn a domain's map, publish the generation with it or without, and record the outcome.

    Raises:
        DomainBusyError: another process is writing the domain.
        NornWeaveError: nothing is published, or it cannot be read or written.
    """
    pull(settings, domain)
    with Engine(settings, watch=False) as engine:
        report = learn(engine, domain, settings, progress)
        learnt_from = engine.agents[domain].generation.name
    store = store_of(settings, domain)
    facts = store.published_facts()
    writing = store_of(
        settings, domain, dimensions=int(facts["dimensions"]), token_vectors=facts.get("token_vectors", "")
    )
    with writing.writer(wait_s=wait_s, purpose="query map") as writer:
        published = writer.publish_map(report.query_map, run_id)
    if published is None:
        waits = "but a sync is due or an older generation answers: nothing was published, and it is learnt again"
        report = replace(report, query_map=None, learnt_at="", reason=f"{report.reason}; {waits}")
    report = replace(report, generation=published or learnt_from)
    write_report(domain_folder(settings, domain), report)
    publish_after_sync(settings, domain)
    return report


def why_due(settings: Settings, domain: Domain, *, now: datetime) -> str:
    """Return why a domain's map is due to be learnt; empty if it is not.

    It is due a week or ``NEW_COMMITS`` after the last time.

    Raises:
        StoreError: what is published cannot be read.
    """
    store, report = store_of(settings, domain), read_report(domain_folder(settings, domain))
    generation = store.current()
    if generation is None or not settings.domains[domain].plan.query_map:
        return ""
    if report is None:
        return "none was learnt yet"
    if now - datetime.fromisoformat(report.at) >= WEEK:
        return "the last one was learnt a week ago"
    if report.generation == generation:
        return ""
    with store.files.open(generation) as index:
        newer = sum(made > report.newest for made, *_ in _examples(index)[0])
    return f"{newer} commits are new" if newer >= NEW_COMMITS else ""


def fit(queries: Vectors, passages: Vectors, answers: Sequence[Numbers]) -> NDArray[np.float64]:
    """Return the change ``W − I`` of query vectors that moves questions closer to their answers than to other passages.

    Minimises ``−log softmax(cos(W·q, answer) / TEMPERATURE) + PULL·‖W − I‖² + STAY·mean ‖W·p − p‖²`` over questions
    ``q`` and passages ``p`` (InfoNCE, van den Oord, Li & Vinyals 2018, arXiv:1807.03748) with Adam from identity. If a
    question has several answers, the nearest one counts. The same input gives the same result on the same machine.

    Args:
        queries: normalised, of shape ``(questions, dimensions)``.
        passages: normalised, of shape ``(passages, dimensions)``.
        answers: for each question, the rows of ``passages`` that answer it, at least one.
    """
    questions = np.asarray(queries, np.float64)
    generator, identity = np.random.default_rng(SEED), np.eye(questions.shape[1])
    full = np.asarray(passages, np.float64)
    pull = PULL * identity + STAY * full.T @ full / len(full)
    is_answer = np.zeros((len(questions), len(passages)), np.bool_)
    for row, numbers in enumerate(answers):
        is_answer[row, numbers] = True
    matrix, mean, spread = identity.copy(), np.zeros_like(identity), np.zeros_like(identity)
    near = np.zeros((len(questions), 0), np.int64)
    for step in range(1, STEPS + 1):
        mapped = questions @ matrix.T
        lengths = np.linalg.norm(mapped, axis=1, keepdims=True) + _SMALLEST
        mapped /= lengths
        if step % LOOK_AGAIN == 1:
            near = _nearest(mapped.astype(np.float32), passages, is_answer)
        drawn = generator.choice(len(passages), min(RANDOM, len(passages)), replace=False)
        near_vectors, others = full[near], full[drawn]
        logits = (
            np.concatenate([np.einsum("qd,qpd->qp", mapped, near_vectors), mapped @ others.T], axis=1) / TEMPERATURE
        )
        answered = np.concatenate([np.take_along_axis(is_answer, near, axis=1), is_answer[:, drawn]], axis=1)
        answered[:, 0] = False  # keep the nearest answer, column 0
        logits[answered] = -np.inf
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        shares[:, 0] -= 1
        slopes = np.einsum("qp,qpd->qd", shares[:, : near.shape[1]], near_vectors) + shares[:, near.shape[1] :] @ others
        slopes /= TEMPERATURE
        slopes = (slopes - mapped * (slopes * mapped).sum(axis=1, keepdims=True)) / lengths
        slope = slopes.T @ questions / len(questions) + 2 * (matrix - identity) @ pull
        mean, spread = 0.9 * mean + 0.1 * slope, 0.999 * spread + 0.001 * slope**2
        matrix -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.999**step)) + _SMALLEST)
    return matrix - identity


def _nearest(mapped: Vectors, passages: Vectors, is_answer: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return, for each question, the rows of its nearest answer and then of the nearest wrong passages."""
    similar = mapped @ np.asarray(passages, np.float32).T
    own = np.where(is_answer, similar, -2).argmax(axis=1)
    others = np.where(is_answer, -2, similar)
    hard = np.argsort(-others, axis=1, kind="stable")[:, :HARD]
    return np.concatenate([own[:, None], hard], axis=1)
