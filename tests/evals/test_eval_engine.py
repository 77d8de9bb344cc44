"""The engine as it is served, measured on the example corpus: the real sync, generations, agents and measures."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from evals.evaluation import evaluate_published
from evals.report import as_json, eval_failed
from evals.runs import SetToRun
from evals.sets import read_sets
from nornweave.ask.engine import Engine
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.text.terminal import Terminal
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts

EXAMPLES = Path(__file__).parents[2] / "examples" / "payments"
NO_MODELS = {"embedding": {"model": "hash:64", "dimensions": 64}, "reranking": {"model": None}}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("measured")
    shutil.copytree(EXAMPLES, folder / "payments")
    sources = [
        {"id": "code", "domain": "code", "type": "files", "path": "payments/code"},
        {"id": "docs", "domain": "documentation", "type": "files", "path": "payments/docs"},
        {"id": "slack", "domain": "conversations", "type": "slack", "path": "payments/slack"},
    ]
    domains = dict.fromkeys(("code", "documentation", "conversations"), NO_MODELS)
    (folder / "nornweave.yaml").write_text(json.dumps({"data_dir": "var", "sources": sources, "domains": domains}))
    settings = load_settings(folder / "nornweave.yaml", {})
    for domain in settings.served_domains:
        run(domain_parts(settings, domain), SyncOptions(run_id="test", wait_s=0))
    return settings


@pytest.fixture(scope="module")
def engine(settings: Settings) -> Iterator[Engine]:
    with Engine(settings, watch=False) as engine:
        yield engine


def judged_set(folder: Path, queries: list[dict[str, object]], *judgments: str) -> Path:
    folder.mkdir()
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    (folder / "qrels.tsv").write_text("\n".join(["query_id\tdoc_id\tgrade", *judgments]))
    return folder


def sets(folder: Path) -> list[SetToRun]:
    return [SetToRun(one) for one in read_sets([folder])]


def test_names_are_found_where_they_are_defined(settings: Settings, engine: Engine, tmp_path: Path) -> None:
    queries = [
        {"id": "defined", "text": "handle_payment_error"},
        {"id": "filtered", "text": "handle_payment_error", "filters": {"path_glob": "src/payments/handlers.py"}},
        {"id": "wrong filter", "text": "handle_payment_error", "filters": {"colour": "red"}},
        {"id": "blank", "text": "  "},
    ]
    folder = judged_set(
        tmp_path / "names", queries, *(f"{query['id']}\tsrc/payments/handlers.py#L42-67\t1" for query in queries)
    )
    results = evaluate_published(settings, engine, sets(folder), run_id="test", count_missing=True)
    assert not eval_failed(Terminal(io.StringIO()), results)
    scopes = as_json(results)["code"]["names"]["scopes"]
    assert list(scopes) == ["domain", "domain, no filter", "all domains"]
    assert [failure["query_id"] for failure in scopes["domain"]["failed"]] == ["wrong filter", "blank"]
    assert "colour" in scopes["domain"]["failed"][0]["reason"]
    assert [failure["query_id"] for failure in scopes["all domains"]["failed"]] == ["blank"]
    stages = scopes["domain"]["stages"]
    assert set(stages) >= {"dense", "sparse", "fulltext", "structured", "combined", "merged", "fused"}
    for stage in ("sparse", "structured", "combined", "fused"):
        assert stages[stage]["Recall@10"] == 0.5, stage
    # Two of four queries are answered; both find the definition, the filtered one first.
    assert 0.25 < stages["fused"]["RR@10"] <= 0.5
    assert scopes["all domains"]["stages"]["fused"]["Recall@10"] == 0.75


def test_messages_are_found_by_their_ids(settings: Settings, engine: Engine, tmp_path: Path) -> None:
    channel = next(iter(sorted((EXAMPLES / "slack").glob("*/*.json"))))
    message = json.loads(channel.read_text(encoding="utf-8"))[0]
    place = f"{channel.parent.name}/{channel.name}#{message['ts']}"
    folder = judged_set(tmp_path / "chat", [{"id": "q", "text": message["text"]}], f"q\t{place}\t1")
    (evaluated,) = evaluate_published(settings, engine, sets(folder), run_id="test")
    result = evaluated.result
    assert (result.domain.value, result.missing) == ("conversations", ())
    answer = result.scopes[0].stage("fused")
    assert answer is not None
    assert answer.metrics["RR@10"].mean == 1
