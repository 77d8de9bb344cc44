"""Two domains of made-up handbooks, published for real with an encoder that needs no model, and questions to them."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evals.judgments import JudgedQuery, JudgedSet, Judgment, JudgmentOrigin
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

PAGES = 24
SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu")
# An encoder of few dimensions confuses nearly everything: who listens to it too much answers badly.
NO_MODELS = {"embedding": {"model": "hash:8", "dimensions": 8}, "reranking": {"model": None}}
DEAF = {"weights": {"dense": 0.9, "sparse": 0.1, "fulltext": 0, "structured": 0}}
GOOD = {"weights": {"dense": 0.1, "sparse": 0.9, "fulltext": 0, "structured": 0}}


def word(*seed: object) -> str:
    """Return a word of four syllables, the same for the same seed."""
    number = int(hashlib.sha256(repr(seed).encode()).hexdigest(), 16)
    return "".join(SYLLABLES[number // len(SYLLABLES) ** place % len(SYLLABLES)] for place in range(4))


def path_of(topic: str, number: int) -> str:
    """Return where a page lies in its source."""
    return f"{topic[0]}{number:02}.md"


def page(topic: str, number: int) -> str:
    """Return a page that says three things of its own and a lot that every page says."""
    own = [word(topic, number, place) for place in range(3)]
    common = " ".join(word(topic, number % 7, place) for place in range(12))
    return f"# Page {number}\n\nThe {own[0]} {own[1]} keeps {own[2]} apart. {common}.\n"


def write_workspace(
    folder: Path, plan: Mapping[str, Any], *, other: Mapping[str, Any] = GOOD, fusion: Mapping[str, Any] | None = None
) -> Settings:
    """Write documentation and research, with a plan for each."""
    for topic in ("docs", "papers"):
        (folder / topic).mkdir(parents=True, exist_ok=True)
        for number in range(PAGES):
            (folder / topic / path_of(topic, number)).write_text(page(topic, number))
    sources = [
        {"id": "docs", "domain": "documentation", "type": "files", "path": "docs"},
        {"id": "papers", "domain": "research", "type": "files", "path": "papers"},
    ]
    domains = {"documentation": {**NO_MODELS, "plan": dict(plan)}, "research": {**NO_MODELS, "plan": dict(other)}}
    config = {"data_dir": "var", "sources": sources, "domains": domains, "fusion": dict(fusion or {})}
    (folder / "nornweave.yaml").write_text(json.dumps(config))
    return load_settings(folder / "nornweave.yaml", {})


def publish(settings: Settings) -> None:
    """Sync both domains."""
    for domain in (Domain.DOCUMENTATION, Domain.RESEARCH):
        report = run(domain_parts(settings, domain), SyncOptions(run_id="test", wait_s=0))
        assert not report.failed, report


def questions(
    topic: str, *, name: str | None = None, origin: JudgmentOrigin = JudgmentOrigin.PEOPLE, count: int = PAGES
) -> JudgedSet:
    """Return a question about each page of a topic, judged by its document."""
    return JudgedSet(
        name=name or topic,
        queries=tuple(
            JudgedQuery(f"{topic}-{at:02}", f"how does {word(topic, at, 0)} keep {word(topic, at, 2)}")
            for at in range(count)
        ),
        judgments=tuple(Judgment(f"{topic}-{at:02}", path_of(topic, at), None, None, 1) for at in range(count)),
        origin=origin,
    )
