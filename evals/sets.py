"""The judged sets of a domain: those of its configuration, and one generated from its corpus."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from evals.generated import generate
from evals.generated.sets import NAME as GENERATED_NAME
from evals.judged_files import read_judgments
from evals.judgments import JudgedSet, Judgment, JudgmentError
from evals.moves import with_moves
from evals.runs import SetToRun
from nornweave.ask.engine import Engine
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.records import Citation
from nornweave.ask.seen.changes import JudgedQuestion
from nornweave.carry.wiring import store_of
from nornweave.config import EvaluationSettings, Settings
from nornweave.core.access import OPERATOR
from nornweave.core.types import Domain
from nornweave.index.index import Index

SHOWN_PATHS = 5
USUAL_GENERATED = 100
"""Queries made out of a corpus that nobody has judged; some hundred tell apart what differs by a few hundredths."""


def configured_sets(settings: Settings, engine: Engine, domains: Sequence[Domain] = ()) -> tuple[SetToRun, ...]:
    """Return the sets to measure if nobody names any.

    Those that the configuration names for every published domain, one made out of the corpus of a domain that names
    none, and those that are judged across domains.

    Args:
        domains: only these, without the sets across domains; all unless given.

    Raises:
        JudgmentError: a configured set is broken, or two of one domain have one name.
        StoreError: a domain's generation cannot be read.
    """
    found: list[SetToRun] = []
    for domain, agent in engine.agents.items():
        if (domains and domain not in domains) or agent.generation.name is None:
            continue
        configured = settings.domains[domain].evaluation
        generated = configured.generated or (0 if configured.judgments else USUAL_GENERATED)
        of_domain = sets_of(agent, configured, generated=generated)
        found += [SetToRun(judged, (domain,), configured.min_score) for judged in of_domain]
    return tuple(found if domains else [*found, *sets_across(settings)])


def sets_across(settings: Settings) -> tuple[SetToRun, ...]:
    """Return the configured sets that are judged across domains.

    Raises:
        JudgmentError: one is broken, or two have one name.
    """
    return tuple(SetToRun(judged) for judged in read_sets(settings.evaluation.judgments))


def read_sets(folders: Sequence[Path]) -> tuple[JudgedSet, ...]:
    """Read judged sets, in the order of ``folders``.

    Raises:
        JudgmentError: a broken set, or two of one name.
    """
    judged = tuple(read_judgments(folder) for folder in folders)
    names = [judged_set.name for judged_set in judged]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise JudgmentError(f"two judged sets are named {repeated[0]!r}; results are told apart by the folder's name")
    return judged


def read_domain_sets(folders: Sequence[Path]) -> tuple[JudgedSet, ...]:
    """Read the configured sets of a domain.

    Raises:
        JudgmentError: as ``read_sets``; one is judged across domains, or named like the set that is made.
    """
    judged = read_sets(folders)
    for judged_set in judged:
        if judged_set.across_domains:
            raise JudgmentError(
                f"judged set {judged_set.name!r} is judged in all domains; name it under 'evaluation', not in one"
            )
        if judged_set.name == GENERATED_NAME:
            raise JudgmentError(f"no judged set can be named {judged_set.name!r}, as the one made out of the corpus is")
    return judged


def sets_of(agent: Agent, evaluation: EvaluationSettings, *, generated: int) -> tuple[JudgedSet, ...]:
    """Return the sets with which a domain is measured.

    Args:
        agent: of the domain; a generated set is made out of what it answers from.
        generated: how many queries to make; 0 for none.

    Raises:
        JudgmentError: a configured set is broken.
        StoreError: no generation can be read.
    """
    judged = read_domain_sets(evaluation.judgments)
    if not generated:
        return judged
    with agent.generation.use(OPERATOR) as generation:
        made = generate(generation, agent.domain, limit=generated)
    return (*judged, made) if made.relevant else judged


def wrong_judgments(settings: Settings, domain: Domain | None, *, but: Collection[str] = ()) -> tuple[str, ...]:
    """Return a sentence for each configured set that is broken or has places without a published document.

    Args:
        domain: whose sets; ``None`` for those that are judged across domains.
        but: paths that are known to be gone.

    Raises:
        StoreError: what is published cannot be read.
    """
    try:
        judged = (
            read_domain_sets(settings.domains[domain].evaluation.judgments)
            if domain
            else read_sets(settings.evaluation.judgments)
        )
    except JudgmentError as error:
        return (str(error),)
    if not judged:
        return ()
    paths = set(but)
    for each in (domain,) if domain else settings.served_domains:
        files = store_of(settings, each).files
        if generation := files.current():
            with files.open(generation) as index:
                paths.update(index.paths())
    return tuple(filter(None, (_say_unmatched(with_moves(settings, each), paths, domain) for each in judged)))


def _say_unmatched(judged: JudgedSet, paths: set[str], domain: Domain | None) -> str:
    judged_paths = sorted({judgment.path for judgment in judged.judgments if judgment.grade > 0})
    found = {judgment.path for judgment in judged.judgments if paths.intersection(judgment.paths)}
    missing = [path for path in judged_paths if path not in found]
    if not missing:
        return ""
    where = domain.value if domain else "any domain"
    named = ", ".join(missing[:SHOWN_PATHS]) + (", …" if len(missing) > SHOWN_PATHS else "")
    return (
        f"judged set {judged.name}: {len(missing)} of {len(judged_paths)} judged paths match no document of {where}: "
        f"{named}; correct its qrels.tsv, or bring the documents back"
    )


def judged_questions(settings: Settings) -> tuple[JudgedQuestion, ...]:
    """Return the questions of all configured sets, with the domains and filters of their sets.

    Raises:
        JudgmentError: a configured set is broken.
    """
    sets: list[tuple[Domain | None, JudgedSet]] = [(None, each) for each in read_sets(settings.evaluation.judgments)]
    for domain in settings.served_domains:
        sets += [(domain, each) for each in read_domain_sets(settings.domains[domain].evaluation.judgments)]
    return tuple(
        JudgedQuestion(
            set_name=judged.name,
            query_id=query.id,
            text=query.text,
            domains=(domain,) if domain else None,
            filters={domain: query.filters} if domain and query.filters else {},
            is_hit=partial(_is_hit, judged.relevant.get(query.id, ())),
        )
        for domain, judged in sets
        for query in judged.queries
    )


def _is_hit(judgments: Sequence[Judgment], citation: Citation) -> bool:
    return any(judgment.hit_by(citation) for judgment in judgments)


def generated_from(before: Index, after: Index, domain: Domain, *, limit: int) -> JudgedSet:
    """Make a set from one generation that another generation should answer as well.

    Args:
        before: what the queries are made out of.
        after: those whose documents say something else there, or are not there, are left out.
        limit: how many queries to make, before any is left out.
    """
    made = generate(before, domain, limit=limit)
    paths = {judgment.path for judgment in made.judgments}
    moved = {path for path in paths if _texts(before, path) != _texts(after, path)}
    gone = {judgment.query_id for judgment in made.judgments if judgment.path in moved}
    return replace(
        made,
        queries=tuple(query for query in made.queries if query.id not in gone),
        judgments=tuple(judgment for judgment in made.judgments if judgment.query_id not in gone),
    )


def _texts(generation: Index, path: str) -> tuple[str, ...]:
    return tuple(indexed.document.text for indexed in generation.indexed_documents(path))


def sets_for_candidate(
    candidate: Agent, published: Agent, configured: EvaluationSettings
) -> tuple[tuple[JudgedSet, ...], tuple[str, ...]]:
    """Return the sets to measure a candidate with, and the problems of sets that cannot be read.

    Queries are made out of what is published: out of a candidate that lost half of its text nobody would ask for that
    half. Documents that say something else now are left out.
    """
    try:
        judged = read_domain_sets(configured.judgments)
    except JudgmentError as error:
        return (), (str(error),)
    if not configured.generated or published.generation.name is None:
        return judged, ()
    with published.generation.use(OPERATOR) as before, candidate.generation.use(OPERATOR) as after:
        made = generated_from(before, after, published.domain, limit=configured.generated)
    return (*judged, made) if made.relevant else judged, ()
