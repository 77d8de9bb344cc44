"""Ask two indexes the same as the same viewer, and say where they differ."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.access.corpora import SOURCES, Written, published
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Filters, RecallResponse
from nornweave.config import DomainSettings, PlanSettings, StorageSettings
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR, Viewer
from nornweave.core.types import Domain, JsonValue, present
from nornweave.index.generations.serving import ServedGeneration
from nornweave.index.searching.finding import LinePattern
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.models.encoders.port import QueryMemo
from nornweave.models.rerankers import RerankerSlot

DOMAIN = Domain.DOCUMENTATION
NOW = present()


class Indexes:
    """An index of everything, and for each viewer one of what they may see; closes them as a context manager."""

    def __init__(self, folder: Path, written: Sequence[Written], *, storage: StorageSettings | None = None) -> None:
        self._folder = folder
        self._written = written
        self._storage = storage
        self._settings = _settings(folder)
        self._executor = ThreadPoolExecutor(4)
        self._alone: dict[frozenset[str], Agent] = {}
        self.whole = self._agent("whole", written)

    def alone(self, viewer: Viewer) -> Agent:
        """Return the index that never had what a viewer may not see."""
        seen = frozenset(one.path for one in self._written if one.is_seen_by(viewer))
        if seen not in self._alone:
            written = [one for one in self._written if one.path in seen]
            self._alone[seen] = self._agent(f"alone-{len(self._alone)}", written)
        return self._alone[seen]

    def differences(
        self, viewer: Viewer, text: str, *, plan: PlanSettings | None = None, filters: Filters | None = None
    ) -> list[str]:
        """Return how the answers differ: items, their order, scores, explanations, states, counts, stages, variants."""
        question = Question(
            text=text, now=NOW, viewer=viewer, top_k=30, explain=True, trace=True, filters={DOMAIN: filters or {}}
        )
        given, expected = (
            _comparable((agent.altered(plan=plan) if plan else agent).recall(one))
            for agent, one in (
                (self.whole, question),
                (self.alone(viewer), replace(question, viewer=OPERATOR)),
            )
        )
        return [f"{name}: {given[name]} is not {expected[name]}" for name in expected if given[name] != expected[name]]

    def variants(self, viewer: Viewer, text: str) -> tuple[str, ...]:
        """Return the other wordings in which a question of a viewer is searched."""
        return self.whole.recall(Question(text=text, now=NOW, viewer=viewer)).expansions

    def other_differences(self, viewer: Viewer) -> list[str]:
        """Return how counts, values of filters, paths, chunks and documents differ."""
        whole, alone = self.whole, self.alone(viewer)
        pairs: dict[str, tuple[Any, Any]] = {
            "counts": (_counts(whole.describe(viewer)), _counts(alone.describe(OPERATOR))),
            "facets": (whole.facets(viewer), alone.facets(OPERATOR)),
            "paths": (sorted(whole.paths(viewer)), sorted(alone.paths(OPERATOR))),
        }
        with whole.generation.use(viewer) as seen, alone.generation.use(OPERATOR) as rest:
            for pattern in (LinePattern("e"), LinePattern("re(try|lease)|[A-Z]{3}", is_regex=True)):
                found, expected = (index.find(pattern, 5, time.monotonic() + 60) for index in (seen, rest))
                pairs[f"lines with {pattern.expression}"] = (found, expected)
            for typed in ("re", "l"):
                pairs[f"completions of {typed}"] = (seen.complete(typed, 9), rest.complete(typed, 9))
            for one in self._written:
                place = (one.source_id, one.path)
                pairs[f"document {one.path}"] = (seen.document(*place), rest.document(*place))
        with whole.generation.use(OPERATOR) as everything, whole.generation.use(viewer) as seen:
            for one in self._written:
                stored = everything.document(one.source_id, one.path)
                for chunk_id in stored.chunk_ids if stored else ():
                    pairs[f"chunk {chunk_id}"] = (seen.chunk(chunk_id) is not None, one.is_seen_by(viewer))
        return [f"{name}: {given} is not {expected}" for name, (given, expected) in pairs.items() if given != expected]

    def close(self) -> None:
        """Close the indexes."""
        for agent in (self.whole, *self._alone.values()):
            agent.close()
        self._executor.shutdown()

    def _agent(self, name: str, written: Sequence[Written]) -> Agent:
        store = published(self._folder / name, written, self._storage)
        return Agent(
            DOMAIN,
            self._settings,
            ServedGeneration(store.files, access=SOURCES),
            load_encoder=lambda: QueryMemo(HashEncoder(dimensions=16)),
            reranker=RerankerSlot(None),
            executor=self._executor,
        )


@contextmanager
def indexes(folder: Path, written: Sequence[Written], *, storage: StorageSettings | None = None) -> Iterator[Indexes]:
    """Publish a corpus, and close what was opened."""
    made = Indexes(folder, written, storage=storage)
    try:
        yield made
    finally:
        made.close()


def _settings(folder: Path) -> DomainSettings:
    file = folder / "nornweave.yaml"
    file.write_text("data_dir: var\n", encoding="utf-8")
    return load_settings(file, {}).domains[DOMAIN]


def _counts(described: Mapping[str, JsonValue]) -> tuple[JsonValue, JsonValue]:
    return described["documents"], described["chunks"]


def _comparable(response: RecallResponse) -> dict[str, Any]:
    """Return an answer without what tells two indexes apart whatever they hold: names and times."""
    return {
        "items": [(one.chunk_id, one.score, one.sources, one.explanation) for one in response.items],
        "states": dict(response.retrieval),
        "searched": response.total_searched,
        "notices": response.notices,
        "variants": response.expansions,
        "signals": response.signals,
        "stages": {
            name: [(one.score, one.citation.source_path, one.citation.char_range) for one in placed]
            for name, placed in response.stages.items()
        },
    }
