"""Questions of judged sets with and without an answer in the corpus, asked of the engine that serves."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from evals.judged_files import read_judgments
from evals.judgments import JudgedQuery, JudgedSet, Judgment
from lab.hidden_chunks import HidingGeneration
from nornweave.ask.engine import Engine
from nornweave.ask.fuse.answerable import best_signals
from nornweave.ask.fuse.records import Answer
from nornweave.ask.search.items import citation_of
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Citation, Filters
from nornweave.connect.connectors import load_settings
from nornweave.core.access.viewer import OPERATOR
from nornweave.core.types import Domain, present

SEED = 20261124


@dataclass(frozen=True, slots=True)
class Case:
    """One question, asked.

    Attributes:
        corpus: what was asked; cases of one corpus are never split between fitting and measuring.
        kind: ``answered`` has a judged item in the ten, ``missed`` has none though the corpus holds one, ``near`` has
            its judged chunks hidden, ``far`` is of another field, ``unanswerable`` was written to have no answer.
        signals: what the search said.
    """

    corpus: str
    kind: str
    signals: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A configuration that is indexed, with the judged sets that are asked of it: of a domain, or of all (``None``)."""

    name: str
    config: Path
    sets: tuple[tuple[JudgedSet, Domain | None], ...]


def read_corpora(file: Path) -> list[Corpus]:
    """Read which corpora there are: YAML, ``[{name, config, sets: {FOLDER: domain or null}}]``, paths from the file."""
    return [
        Corpus(
            row["name"],
            file.parent / row["config"],
            tuple(
                (read_judgments(file.parent / folder), Domain(domain) if domain else None)
                for folder, domain in row["sets"].items()
            ),
        )
        for row in yaml.safe_load(file.read_text(encoding="utf-8"))
    ]


def collect(corpora: Sequence[Corpus], sample: int) -> Iterator[Case]:
    """Ask up to ``sample`` questions of each set of each kind; every domain alone, unless a set is of all."""
    draw = random.Random(SEED)  # noqa: S311
    for corpus in corpora:
        strangers = [query for other in corpora if other.config != corpus.config for query in _queries(other)]
        strangers += [query for other in corpora if _is_beside(other, corpus) for query in _queries(other)]
        with Engine(load_settings(corpus.config), watch=False) as engine:
            asked = _Asked(engine)
            for judged, domain in corpus.sets:
                for query in draw.sample(judged.queries, min(sample, len(judged.queries))):
                    yield from _own(asked, corpus.name, judged.relevant.get(query.id, ()), query, domain)
                for query in draw.sample(strangers, min(sample, len(strangers))):
                    yield Case(corpus.name, "far", _signals(asked.ask(query, domain, {})))


def _queries(corpus: Corpus) -> list[JudgedQuery]:
    return [query for judged, _ in corpus.sets for query in judged.queries]


def _is_beside(other: Corpus, corpus: Corpus) -> bool:
    """Tell another corpus of the same index: it is in a domain that is not asked."""
    return other is not corpus and other.config == corpus.config


def _own(
    asked: _Asked, corpus: str, relevant: Sequence[Judgment], query: JudgedQuery, domain: Domain | None
) -> Iterator[Case]:
    filters = {domain: query.filters} if domain and query.filters else {}
    answer = asked.ask(query, domain, filters)
    if not relevant:
        yield Case(corpus, "unanswerable", _signals(answer))
        return
    hit = any(judgment.hit_by(item.citation) for judgment in relevant for item in answer.items)
    yield Case(corpus, "answered" if hit else "missed", _signals(answer))
    with asked.hiding(relevant, domain):
        yield Case(corpus, "near", _signals(asked.ask(query, domain, filters)))


def _signals(answer: Answer) -> Mapping[str, float]:
    return best_signals([response.signals for response in answer.recalled.responses if response.signals])


class _Asked:
    """An engine whose chunks can be hidden."""

    def __init__(self, engine: Engine) -> None:
        self._answers = engine.as_seen_by(OPERATOR).answers
        self._hiding: dict[Domain, HidingGeneration] = {}
        self._places: dict[Domain, dict[str, list[tuple[int, Citation]]]] = {}
        for domain, agent in engine.agents.items():
            hiding = self._hiding[domain] = HidingGeneration(agent.generation)
            agent.generation = hiding  # type: ignore[assignment]
            places = self._places[domain] = {}
            with hiding.use(OPERATOR) as index:
                for number, chunk in index.chunks(np.arange(index.size, dtype=np.int32)).items():
                    places.setdefault(chunk.path, []).append((number, citation_of(domain, chunk)))

    def ask(self, query: JudgedQuery, domain: Domain | None, filters: Mapping[Domain, Filters]) -> Answer:
        """Ask one domain, or all."""
        domains = (domain,) if domain else None
        return self._answers.answer(
            Question(text=query.text, now=present(), viewer=OPERATOR, domains=domains, filters=filters)
        )

    def hiding(self, relevant: Sequence[Judgment], domain: Domain | None) -> _Hidden:
        """Hide what is judged relevant, in one domain or in all."""
        hidden = {
            one: frozenset(
                number
                for judgment in relevant
                for number, citation in places.get(judgment.path, ())
                if judgment.hit_by(citation)
            )
            for one, places in self._places.items()
            if domain in {None, one}
        }
        return _Hidden(self._hiding, hidden)


@dataclass(frozen=True, slots=True)
class _Hidden:
    generations: Mapping[Domain, HidingGeneration]
    hidden: Mapping[Domain, frozenset[int]]

    def __enter__(self) -> None:
        for domain, numbers in self.hidden.items():
            self.generations[domain].hidden = numbers

    def __exit__(self, *_: object) -> None:
        for generation in self.generations.values():
            generation.hidden = frozenset()
