"""A small installation whose documents change from version to version, and what its indexes must hold then."""

from __future__ import annotations

import hashlib
import json
import os
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from nornweave.carry.ledger_file import load_ledger, published
from nornweave.carry.wiring import domain_folder, store_of
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain, GenerationId
from nornweave.index.index import Index
from nornweave.index.outcomes import read_status
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

DIMENSIONS = 16
NO_MODELS = {"embedding": {"model": f"hash:{DIMENSIONS}", "dimensions": DIMENSIONS}, "reranking": {"model": None}}
VERSIONS = 5
# Pages from ``CHANGING`` on never change: a segment that has them stays when a sync writes the others.
PAGES, CHANGING, MODULES = 64, 24, 8
WORDS = ("anchor", "basalt", "cobalt", "dynamo", "ember", "fjord", "garnet", "harbor", "indigo", "juniper", "krypton")
State = Mapping[str, str]
"""``domain/source/path`` → digest of everything that the published generation holds of the document."""


@dataclass(frozen=True)
class Workspace:
    """Two domains over a folder of pages and one of modules.

    Attributes:
        folder: of ``nornweave.yaml`` and the sources.
        seed: decides what the documents say.
        storage: the PostgreSQL server that stores them; files below ``data_dir`` without.
    """

    folder: Path
    data_dir: Path
    seed: int
    storage: str = ""

    @property
    def config(self) -> Path:
        """Return the configuration file."""
        return self.folder / "nornweave.yaml"

    @cached_property
    def settings(self) -> Settings:
        """Write the configuration and read it."""
        sources = [
            {"id": "handbook", "domain": "documentation", "type": "files", "path": "docs"},
            {"id": "service", "domain": "code", "type": "files", "path": "code"},
        ]
        domains = {"documentation": NO_MODELS, "code": NO_MODELS}
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("docs", "code"):
            (self.folder / name).mkdir(exist_ok=True)
        configured = {"data_dir": str(self.data_dir), "sources": sources, "domains": domains}
        if self.storage:
            configured["storage"] = {"url": self.storage, "schema_prefix": f"campaign_{self.seed}"}
        self.config.write_text(json.dumps(configured), encoding="utf-8")
        return load_settings(self.config, {})

    def write(self, version: int) -> None:
        """Make the sources say what they say in a version: documents come, change, move and go."""
        _ = self.settings
        wanted = dict(self._documents(version))
        for name in ("docs", "code"):
            for file in (self.folder / name).iterdir():
                if f"{name}/{file.name}" not in wanted:
                    file.unlink()
        for path, text in wanted.items():
            file = self.folder / path
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                file.write_text(text, encoding="utf-8")
                moment = 1_700_000_000 + zlib.crc32(text.encode()) % 1_000_000  # the same text has the same time
                os.utime(file, (moment, moment))

    def texts(self) -> set[str]:
        """Return every text that any version has."""
        return {text for version in range(VERSIONS) for _, text in self._documents(version)}

    def _documents(self, version: int) -> Iterator[tuple[str, str]]:
        for number in range(PAGES):
            changed_in = version if number < CHANGING and number % VERSIONS == version else 0
            if number == 5 + version:  # a page that is not there in this version
                continue
            name = f"moved-{version}" if number == 1 else f"{number:02}"
            yield f"docs/{name}.md", self._page(number, changed_in)
        for number in range(MODULES):
            changed_in = version if number % 3 == version % 3 else 0
            yield f"code/part_{number}.py", self._module(number, changed_in)

    def _page(self, number: int, version: int) -> str:
        words = random.Random(f"{self.seed} {number} {version}")
        sections = (
            f"## {words.choice(WORDS)} {part}\n\n{' '.join(words.choices(WORDS, k=40))}.\n" for part in range(4)
        )
        return f"# Page {number}\n\nThe limit is {words.randrange(1000)} ms.\n\n" + "\n".join(sections)

    def _module(self, number: int, version: int) -> str:
        words = random.Random(f"{self.seed} module {number} {version}")
        functions = (
            f"def {words.choice(WORDS)}_{part}(limit={words.randrange(1000)}):\n    return limit\n" for part in range(4)
        )
        return "\n\n".join(functions)


class References:
    """What a first sync of each version publishes, found out when it is asked for; once for all campaigns of a seed."""

    _states: ClassVar[dict[tuple[int, int], State]] = {}

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed

    def __getitem__(self, version: int) -> State:
        """Return the state of a version."""
        key = self._seed, version
        if key not in self._states:
            workspace = Workspace(self._folder, self._folder / f"var-{version}", self._seed)
            workspace.write(version)
            for domain in workspace.settings.served_domains:
                run(domain_parts(workspace.settings, domain), SyncOptions(run_id="reference", wait_s=0))
            self._states[key] = published_state(workspace.settings)
        return self._states[key]


def published_state(settings: Settings) -> State:
    """Read everything that is published."""
    state: dict[str, str] = {}
    for domain in settings.served_domains:
        if current := store_of(settings, domain).current():
            state.update(state_of(settings, domain, current))
    return state


def state_of(settings: Settings, domain: Domain, generation: GenerationId) -> State:
    """Read everything that a generation has."""
    with store_of(settings, domain).files.open(generation) as opened:
        return _documents_of(domain, opened)


def between(settings: Settings, allowed: Sequence[State]) -> list[str]:
    """Return the domains whose published documents are of none of the states."""
    found = published_state(settings)
    return [
        f"{domain.value} is neither as before nor as after a sync"
        for domain in settings.served_domains
        if of_domain(found, domain) not in [of_domain(state, domain) for state in allowed]
    ]


def differences(found: State, expected: State) -> list[str]:
    """Return what differs, in one line."""
    names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    return [f"{len(names)} documents differ from a first sync, such as {names[0]}"] if names else []


def of_domain(state: State, domain: Domain) -> State:
    """Return the part of a state that is of a domain."""
    return {name: digest for name, digest in state.items() if name.startswith(f"{domain.value}/")}


def _documents_of(domain: Domain, generation: Index) -> dict[str, str]:
    numbers = np.arange(generation.chunk_count, dtype=np.int32)
    vectors = generation.vectors(numbers)
    texts: dict[str, list[str]] = {}
    for number, chunk in sorted(generation.chunks(numbers).items()):
        shown = (
            chunk.chunk_id, chunk.content, chunk.char_range, chunk.line_range, chunk.title, chunk.section,
            chunk.updated_at, chunk.stale, dict(chunk.metadata), chunk.facts, vectors[number].tobytes(),
        )  # fmt: skip
        texts.setdefault(f"{domain.value}/{chunk.source_id}/{chunk.path}", []).append(repr(shown))
    frequencies = {f"{domain.value}/terms": [repr(sorted(generation.document_frequencies(WORDS).items()))]}
    return {
        name: hashlib.sha256("\n".join(shown).encode()).hexdigest() for name, shown in {**texts, **frequencies}.items()
    }


def disorder(settings: Settings) -> list[str]:
    """Return what a finished sync must not leave: unfinished files, records that do not fit what is published."""
    trouble = [f"{file.name} is left" for file in settings.data_dir.rglob(".build-*")]
    current = published(settings)
    ledger = load_ledger(settings)
    if ledger is None or dict(ledger.generations) != current:
        trouble.append(f"the ledger is of {ledger and dict(ledger.generations)}")
    for domain in settings.served_domains:
        recorded = read_status(domain_folder(settings, domain)).get("latest", {})
        if recorded.get("generation") != current.get(domain.value):
            trouble.append(f"{domain.value}: the status names {recorded.get('generation')}")
        store = store_of(settings, domain, dimensions=DIMENSIONS)
        with store.writer(wait_s=10, purpose="campaign") as writer:
            counts = writer.counts()
            stored = {f"{domain.value}/{'/'.join(key)}" for key in writer.manifest()}
        if stored != of_domain(published_state(settings), domain).keys() - {f"{domain.value}/terms"}:
            trouble.append(f"{domain.value}: the working file knows other documents than are published")
        if counts.failed or counts.missing_vectors or counts.orphan_chunks:
            trouble.append(f"{domain.value}: {counts}")
    return trouble
