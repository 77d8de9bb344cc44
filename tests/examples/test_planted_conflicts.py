"""The conflicts that were planted in the example corpus are found over the whole corpus, and what only looks like one is not."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from recall_workspace import NO_MODELS, current_file, publish

from nornweave.disagree.conflicts import FactConflict, LocatedFact, find_conflicts
from nornweave.connect.connectors import load_settings
from nornweave.disagree.conflicts.decision import rivals_of
from nornweave.index.fact_pairs import read_fact_pairs
from nornweave.index.searching.generation_file import DataFile
from nornweave.core.types import Domain

ROOT = Path(__file__).parents[2]
PLANTED: list[dict[str, Any]] = yaml.safe_load((ROOT / "examples/planted.yaml").read_text(encoding="utf-8"))
# Of the planted conflicts these are found as facts; the others are stated without a name that both sides use, or are
# less certain than what is listed for a whole corpus.
FOUND = {"webhooks: timeout", "payments API: api_version", "payments: default_currency", "webhook events: retention"}
# Source → the folder of its paths below examples/payments.
FOLDERS = {
    "payments": "code/", "payments-docs": "", "payments-slack": "slack/", "payments-issues": "github/",
    "payments-meetings": "transcripts/", "payments-logs": "messages/", "payments-research": "research/",
}  # fmt: skip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def alarms(tmp_path_factory: pytest.TempPathFactory) -> list[FactConflict]:
    """What disagrees in the corpus, ingested as the demo ingests it."""
    file = tmp_path_factory.mktemp("examples") / "nornweave.yaml"
    sources = [_absolute(one) for one in yaml.safe_load((ROOT / "nornweave.yaml").read_text())["sources"]
               if one["id"] in FOLDERS]  # fmt: skip
    assert len(sources) == len(FOLDERS)
    domains = {domain.value: NO_MODELS for domain in Domain}
    file.write_text(json.dumps({"data_dir": "var", "sources": sources, "domains": domains}), encoding="utf-8")
    settings = load_settings(file, {})
    publish(settings)
    facts, pairs = read_fact_pairs({domain.value: [DataFile(current_file(settings, domain))] for domain in Domain})
    return find_conflicts(facts, rivals=rivals_of(facts, joined=pairs))


def _absolute(source: dict[str, Any]) -> dict[str, Any]:
    return {**source, **{key: str(ROOT / source[key]) for key in ("path", "metadata") if key in source}}


def path_of(side: LocatedFact) -> str:
    return FOLDERS[side.source_id] + side.path


def sides(alarm: FactConflict) -> Iterator[tuple[LocatedFact, LocatedFact]]:
    yield alarm.first, alarm.second
    yield from ((alarm.first, also) for also in alarm.also)


def joins(alarm: FactConflict, planted: dict[str, Any], *, as_quoted: bool) -> bool:
    """Tell whether an alarm joins the paths of two planted sides; if asked, in what is quoted of them."""
    for one, other in combinations(planted["sides"], 2):
        for pair in sides(alarm):
            for first, second in (pair, pair[::-1]):
                if path_of(first) == one["path"] and path_of(second) == other["path"]:
                    if not as_quoted or (is_quoted(first, one["quote"]) and is_quoted(second, other["quote"])):
                        return True
    return False


def is_quoted(side: LocatedFact, quote: str) -> bool:
    """Tell whether most words of a fact's line, or of the quote, are the other's, too."""
    said, quoted = (set(re.findall(r"\w+", text.lower())) for text in (side.fact.statement, quote))
    return len(said & quoted) >= 0.6 * min(len(said), len(quoted))


def planted(kind: str) -> list[dict[str, Any]]:
    return [one for one in PLANTED if one["kind"] == kind]


def label(one: dict[str, Any]) -> str:
    return f"{one['entity']}: {one['attribute']}"


def test_exactly_these_planted_conflicts_are_found(alarms: list[FactConflict]) -> None:
    found = {label(one) for one in planted("conflict") if any(joins(alarm, one, as_quoted=True) for alarm in alarms)}
    assert found == FOUND


@pytest.mark.parametrize("one", planted("hard_negative"), ids=label)
def test_what_only_looks_like_a_conflict_raises_no_alarm(alarms: list[FactConflict], one: dict[str, Any]) -> None:
    assert [alarm.explanation for alarm in alarms if joins(alarm, one, as_quoted=True)] == []
