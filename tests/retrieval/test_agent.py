"""One domain's agent over a real generation: its life, its answers, and what it says when something is wrong."""

import re
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from held_encoder import Held
from hypothesis import given, settings
from hypothesis import strategies as st
from questions import question_of
from recall_workspace import agent_of, change_generation, configure, current_file, opened, publish, write_workspace
from waiting import GENEROUS_MS

from nornweave.ask.search.agent import Agent
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import AgentState, Filters
from nornweave.carry.wiring import store_of
from nornweave.config import PlanSettings, Settings, SourceWeights
from nornweave.core.access import OPERATOR
from nornweave.core.errors import EncoderError, NoGenerationError, QueryError, StoreError
from nornweave.core.types import NO_METADATA, Domain
from nornweave.index.connection import connect_reader
from nornweave.index.generations.serving import ServedGeneration
from nornweave.index.searching.arrays import arrays_file, open_arrays, writing_arrays
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.models.encoders.port import QueryMemo
from nornweave.models.rerankers import RerankerSlot

ALL_OK = {"dense", "sparse", "fulltext", "structured"}


class Another(HashEncoder):
    """An encoder of the same size whose vectors mean something else."""

    def __init__(self) -> None:
        super().__init__(64)
        self.version = "another:64:1"


@pytest.fixture(scope="module")
def code(workspace: Settings, pool: ThreadPoolExecutor) -> Iterator[Agent]:
    with agent_of(workspace, Domain.CODE, pool) as agent:
        agent.start()
        yield agent


def asked(text: str, *, filters: Filters = NO_METADATA, domain: Domain = Domain.CODE, **options: Any) -> Question:
    return question_of(text, filters={domain: filters}, **options)


# Life


def test_starting_ready_draining_offline(workspace: Settings, pool: ThreadPoolExecutor) -> None:
    encoder = Held()
    with agent_of(workspace, Domain.CODE, pool, encoder=encoder) as agent, ThreadPoolExecutor(1) as client:
        assert agent.state is AgentState.STARTING
        encoder.go.set()
        agent.start()
        assert agent.state is AgentState.READY
        encoder.go.clear()
        encoder.asked.clear()
        running = client.submit(agent.recall, asked("payment"))
        assert encoder.asked.wait(30)
        agent.close()
        assert agent.state is AgentState.DRAINING, "a request is still running"
        with pytest.raises(StoreError, match="shutting down"):
            agent.recall(asked("payment"))
        encoder.go.set()
        assert running.result(30).retrieval["dense"] == "ok"
        assert agent.state is AgentState.OFFLINE


def test_answers_while_it_starts(workspace: Settings, pool: ThreadPoolExecutor) -> None:
    with agent_of(workspace, Domain.CODE, pool) as agent:
        assert agent.recall(asked("payment")).items
        assert agent.state is AgentState.STARTING


def test_degraded_until_something_is_published(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    settings = write_workspace(tmp_path)
    with agent_of(settings, Domain.RESEARCH, pool) as agent:
        agent.start()
        assert agent.state is AgentState.DEGRADED
        health = agent.health(OPERATOR)
        assert health["generation"] is None
        assert "nornweave sync" in str(health["checks"])
        described = agent.describe(OPERATOR)
        assert (described["generation"], described["chunks"]) == (None, 0)
        assert "nornweave sync" in str(described["reason"])
        with pytest.raises(NoGenerationError, match="nornweave sync"):
            agent.recall(asked("payment"))
        publish(settings, Domain.RESEARCH)
        agent.refresh()
        assert agent.state is AgentState.READY
        assert agent.recall(asked("jitter")).items


@pytest.mark.parametrize(("question", "field"), [
    (asked(" "), "query"),
    (asked("x", top_k=0), "top_k"),
    (asked("x", filters={"colour": "red"}, domain=Domain.RESEARCH), "filters.research.colour"),
    (asked("x", filters={"tags": 3}, domain=Domain.RESEARCH), "filters.research.tags"),
])  # fmt: skip
def test_a_wrong_question_is_refused_before_anything_is_published_too(
    tmp_path: Path, pool: ThreadPoolExecutor, question: Question, field: str
) -> None:
    with agent_of(write_workspace(tmp_path), Domain.RESEARCH, pool) as agent, pytest.raises(QueryError) as raised:
        agent.recall(question)
    assert raised.value.field == field


def test_an_encoder_that_cannot_be_loaded_is_a_problem_and_no_error(
    workspace: Settings, pool: ThreadPoolExecutor
) -> None:
    loads = []

    def load() -> QueryMemo:
        loads.append(1)
        raise EncoderError("no weights here; install them")

    agent = Agent(
        Domain.CODE,
        workspace.domains[Domain.CODE],
        ServedGeneration(store_of(workspace, Domain.CODE).files),
        load_encoder=load,
        reranker=RerankerSlot(None),
        executor=pool,
    )
    agent.start()
    assert agent.state is AgentState.DEGRADED
    response = agent.recall(asked("payment error"))
    assert response.retrieval["dense"] == "failed"
    assert response.items
    assert any("no weights here; install them" in notice for notice in response.notices)
    assert "no weights here" in str(agent.health(OPERATOR)["checks"])
    assert loads == [1], "not tried again for every query"
    agent.close()


# Answers


def test_an_item_says_where_it_stands_and_how_it_was_found(code: Agent) -> None:
    response = code.recall(asked("what does handle_payment_error return?", explain=True, top_k=3))
    first = response.items[0]
    assert (first.citation.source_id, first.citation.source_path) == ("shop", "src/payments/handlers.py")
    assert first.citation.line_range == (10, 14)
    assert first.content.startswith("def handle_payment_error")
    assert first.citation.char_range[1] - first.citation.char_range[0] == len(first.content)
    assert first.sources["structured"].rank == 1
    assert first.explanation is not None
    assert sum(first.explanation.contributions.values()) == pytest.approx(first.explanation.combined)
    assert 0 < first.explanation.combined <= 1
    assert (response.agent_id, response.domain_id, response.total_searched) == ("code-memory", Domain.CODE, 6)
    assert set(response.retrieval) == ALL_OK
    assert response.generation == "gen-000001"
    assert len(response.items) == 3
    assert response.items[0].rerank_score is None
    assert code.recall(asked("payment")).items[0].explanation is None


def test_messages_are_cited_by_id_and_papers_by_section(workspace: Settings, pool: ThreadPoolExecutor) -> None:
    with agent_of(workspace, Domain.CONVERSATIONS, pool) as agent:
        first = agent.recall(asked("why 422 instead of 400")).items[0].citation
    assert first.message_ids == ("4", "5")
    assert first.line_range is None
    with agent_of(workspace, Domain.RESEARCH, pool) as agent:
        first = agent.recall(asked("jitter duplicate authorizations")).items[0].citation
    assert (first.source_path, first.section) == ("storms.md", "Retry storms in card networks > Results")


def test_facets_count_what_filters_find(code: Agent) -> None:
    facets = code.facets(OPERATOR)
    assert set(facets) == {"source", "language", "node_type"}, "no patterns, no times"
    for value, count in facets["language"]:
        found = code.recall(asked("payment", filters={"language": value}, top_k=100))
        assert found.total_searched == count
    assert [value for value, _ in facets["language"]] == ["python", "typescript"]
    assert code.filter_counts(OPERATOR) is code.filter_counts(OPERATOR), "counted once a generation"


@pytest.mark.parametrize(("filters", "paths"), [
    ({"path_glob": "src/payments/**"}, {"src/payments/handlers.py", "src/payments/ledger.py"}),
    ({"path_glob": "src/pay"}, set()),
    ({"language": "typescript"}, {"src/payments_web/checkout.ts"}),
    ({"language": "python", "node_type": "class_definition"}, {"src/payments/handlers.py"}),
    ({"language": "cobol"}, set()),
])  # fmt: skip
@pytest.mark.parametrize("text", ["payment", "submitOrder", '"=>"', "🙂"])
def test_filters_are_exact(code: Agent, text: str, filters: Mapping[str, Any], paths: set[str]) -> None:
    """Whatever is asked: a filtered answer is the whole answer without what does not qualify, and counts what does."""
    whole = code.recall(asked(text, top_k=100))
    part = code.recall(asked(text, top_k=100, filters=filters))
    found = {item.citation.source_path for item in part.items}
    assert found <= paths
    qualifying = [
        (item.chunk_id, pytest.approx(item.score))
        for item in whole.items
        if item.citation.source_path in paths
        and ("node_type" not in filters or item.metadata["node_type"] == filters["node_type"])
    ]
    assert [(item.chunk_id, item.score) for item in part.items] == qualifying
    assert part.total_searched < whole.total_searched
    if not paths:
        assert (part.total_searched, part.items) == (0, ())
        assert dict(part.retrieval) == dict.fromkeys(ALL_OK, "empty"), "not found differs from not searched"


TEXTS = ["payment error", "handle_payment_error", "the", "ledger entry amount", '"return"', "🙂", "支付", "a"]


@settings(max_examples=40)
@given(st.sampled_from(TEXTS), st.integers(1, 100), st.integers(1, 100))
def test_fewer_items_are_the_first_of_more(code: Agent, text: str, one: int, other: int) -> None:
    few, many = (code.recall(asked(text, top_k=top_k)) for top_k in sorted((one, other)))
    assert few.items == many.items[: len(few.items)]
    assert len(few.items) == min(one, other, len(many.items))
    scores = [item.score for item in many.items]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert len({item.chunk_id for item in many.items}) == len(many.items)


def test_equal_documents_come_in_one_order_wherever_they_are_cut(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    """Thirty copies of a page have thirty equal scores."""
    folder = tmp_path / "docs" / "copies"
    folder.mkdir(parents=True)
    for number in range(30):
        (folder / f"{number:02d}.md").write_text("# Zebra\n\nThe zebra crossing is closed.\n", encoding="utf-8")
    settings = write_workspace(tmp_path)
    publish(settings, Domain.DOCUMENTATION)
    with agent_of(settings, Domain.DOCUMENTATION, pool) as agent:
        answers = {top_k: agent.recall(asked("zebra crossing", top_k=top_k)).items for top_k in (1, 3, 10, 29, 100)}
    whole = [item.citation.source_path for item in answers[100]]
    assert whole[:30] == [f"copies/{number:02d}.md" for number in range(30)]
    for top_k, items in answers.items():
        assert [item.citation.source_path for item in items] == whole[:top_k]


@pytest.mark.parametrize("storage", ["exact", pytest.param("hnsw", marks=pytest.mark.vss)])
def test_a_chunk_asked_for_by_its_own_text(tmp_path: Path, pool: ThreadPoolExecutor, storage: str) -> None:
    """Dense alone, which the index approximates with one byte a component: a score is 1 at most, and no error."""
    dense = {"dense": 1, "sparse": 0, "fulltext": 0, "structured": 0}
    plan = {"weights": dense}
    settings = write_workspace(tmp_path, {"code": {"storage": {"vector_index": storage}, "plan": plan}})
    publish(settings, Domain.CODE)
    with opened(settings, Domain.CODE) as generation, agent_of(settings, Domain.CODE, pool) as agent:
        assert generation.meta["built_with"] == storage
        for text in generation.contents(np.arange(generation.chunk_count, dtype=np.int32)).values():
            items = agent.recall(asked(text)).items
            assert items[0].score <= 1
            assert items[0].sources["dense"].score == pytest.approx(1, abs=0.05)
            assert text == items[0].content


def test_no_cross_encoder_is_said_where_one_was_asked_for(code: Agent) -> None:
    assert any("not reranked" in notice for notice in code.recall(asked("payment", rerank="on")).notices)
    assert code.recall(asked("payment", rerank="auto")).notices == ()


def test_a_traced_questionsays_what_every_stage_found(code: Agent) -> None:
    response = code.recall(asked("handle_payment_error", trace=True, top_k=2))
    assert set(response.stages) == {*ALL_OK, "combined"}
    for stage, placed in response.stages.items():
        assert len(placed) <= 2
        assert [one.score for one in placed] == sorted((one.score for one in placed), reverse=True), stage
    assert response.stages["combined"][0].citation == response.items[0].citation
    assert code.recall(asked("handle_payment_error")).stages == {}
    none = code.recall(asked("payment", trace=True, filters={"language": "cobol"}))
    assert all(placed == () for placed in none.stages.values())


# What it says of itself


def test_statistics_count_answers_failures_and_what_was_searched(workspace: Settings, pool: ThreadPoolExecutor) -> None:
    with agent_of(workspace, Domain.CODE, pool) as agent:
        agent.start()
        assert agent.health(OPERATOR)["statistics"] == {
            "requests": 0,
            "failures": 0,
            "total_searched": 0,
            "latency_ms": None,
        }
        agent.recall(asked("payment"))
        agent.recall(asked("payment", filters={"language": "typescript"}))
        with pytest.raises(QueryError):
            agent.recall(asked(" "))
        statistics = agent.health(OPERATOR)["statistics"]
    assert isinstance(statistics, dict)
    latency = statistics.pop("latency_ms")
    assert statistics == {"requests": 3, "failures": 1, "total_searched": 6 + 1}
    assert 0 < latency["p50"] <= latency["p95"]


def test_describe_and_health(code: Agent) -> None:
    described = code.describe(OPERATOR)
    assert (described["agent_id"], described["domain_id"], described["name"]) == ("code-memory", "code", "Source Code")
    assert (described["generation"], described["documents"], described["chunks"]) == ("gen-000001", 3, 6)
    filters = {one["key"] for one in described["filters"] if "from" not in one}
    assert filters == {"source", "path_glob", "language", "since", "node_type", "kind", "author", "path", "touches"}
    health = code.health(OPERATOR)
    assert (health["state"], health["generation"], health["notices"]) == ("READY", "gen-000001", [])
    assert set(code.paths(OPERATOR)) == {
        "src/payments/handlers.py",
        "src/payments/ledger.py",
        "src/payments_web/checkout.ts",
    }


# What is wrong


def test_a_generation_of_another_encoder_answers_without_dense_and_says_so(
    workspace: Settings, pool: ThreadPoolExecutor
) -> None:
    with agent_of(workspace, Domain.CODE, pool, encoder=Another()) as agent:
        agent.start()
        response = agent.recall(asked("payment error"))
        assert {**response.retrieval, "dense": "failed"} == dict(response.retrieval)
        assert response.items
        assert "dense" not in response.items[0].sources
        (notice,) = response.notices
        assert "hash:64:1" in notice
        assert "another:64:1" in notice
        assert "sync" in notice
        assert agent.state is AgentState.DEGRADED
        assert notice.removeprefix("dense: ") in agent.health(OPERATOR)["notices"]


@pytest.fixture
def copied(workspace: Settings, tmp_path: Path) -> Settings:
    """The published workspace, to be damaged."""
    folder = tmp_path / "copied"
    shutil.copytree(workspace.file.parent, folder)
    return configure(folder)


def test_a_generation_of_another_analyzer_says_so(copied: Settings, pool: ThreadPoolExecutor) -> None:
    change_generation(copied, Domain.CODE, "update meta set value = 'analysis-0' where key = 'analyzer'")
    with agent_of(copied, Domain.CODE, pool) as agent:
        response = agent.recall(asked("payment"))
    assert response.items
    assert any("analysis-0" in notice and "sync" in notice for notice in response.notices)


def test_a_generation_of_another_schema_is_a_clear_error(copied: Settings, pool: ThreadPoolExecutor) -> None:
    change_generation(copied, Domain.CODE, "update meta set value = '0' where key = 'generation_schema'")
    with agent_of(copied, Domain.CODE, pool) as agent:
        agent.start()
        with pytest.raises(StoreError, match=r"has schema '0'.*nornweave sync"):
            agent.recall(asked("payment"))
        assert agent.state is AgentState.DEGRADED
        assert "has schema '0'" in str(agent.health(OPERATOR)["checks"])
        assert "has schema '0'" in str(agent.describe(OPERATOR)["reason"])


def test_a_generation_that_lost_a_table_is_no_stack_trace(copied: Settings, pool: ThreadPoolExecutor) -> None:
    file = current_file(copied, Domain.CODE)
    whole, name = file.read_bytes(), file.name.rpartition("-")[0]
    manifest = file.with_name(f"{name}.json").read_text()
    with duckdb.connect(str(file), read_only=True) as connection:
        tables = [name for (name,) in connection.execute("select table_name from duckdb_tables()").fetchall()]
    refused = []
    for number, table in enumerate(tables):
        renamed = f"gen-{number + 100:06d}"  # DuckDB keeps what it had open under a path
        file.with_name(f"{renamed}.json").write_text(manifest.replace(name, renamed))
        damaged = file.with_name(f"{renamed}-000.duckdb")
        damaged.write_bytes(whole)
        arrays_file(file).rename(arrays_file(damaged))
        with duckdb.connect(str(damaged)) as connection:
            connection.execute(f"drop table {table}")
        (file.parent / "CURRENT").write_text(f"{renamed}\n")
        file.unlink()
        file = damaged
        with agent_of(copied, Domain.CODE, pool) as agent:
            agent.start()
            try:
                assert agent.recall(asked('payment "return"', filters={"language": "python"})).items
            except StoreError as error:
                assert re.search(rf"(?s){damaged.name}.*(roll back|sync)", str(error))
                refused.append(table)
    assert {"chunks", "documents", "facets", "meta"} <= set(refused)


def test_a_card_that_is_no_card_is_no_stack_trace(copied: Settings, pool: ThreadPoolExecutor) -> None:
    with connect_reader(file := current_file(copied, Domain.CODE)) as connection:
        ((of,),) = connection.execute("select value from meta where key = 'arrays'").fetchall()
    arrays = {name: array.copy() for name, array in open_arrays(file, of).items()}
    arrays["cards.text"][:] = ord("{")
    with writing_arrays(file, of) as writer:
        for name, array in arrays.items():
            writer.add(name, array)
    with agent_of(copied, Domain.CODE, pool) as agent, pytest.raises(StoreError):
        agent.recall(asked("payment"))


def test_a_damaged_generation_falls_back_and_says_so(copied: Settings, pool: ThreadPoolExecutor) -> None:
    files = store_of(copied, Domain.CODE).files
    (copied.file.parent / "code/src/payments/ledger.py").write_text("def renamed_entry():\n    pass\n")
    publish(copied, Domain.CODE)
    current_file(copied, Domain.CODE).write_bytes(b"garbage" * 1000)
    with agent_of(copied, Domain.CODE, pool) as agent:
        agent.start()
        response = agent.recall(asked("post_entry"))
        assert response.generation == "gen-000001"
        assert any("gen-000002" in notice and "gen-000001 answers instead" in notice for notice in response.notices)
        assert agent.state is AgentState.DEGRADED
        files.point_at(files.all()[0])
        agent.refresh()
        assert agent.recall(asked("post_entry")).notices == ()
        assert agent.state is AgentState.READY


# Deadlines


def test_queries_that_wait_for_an_encoder_hold_up_nothing_else(workspace: Settings, held: Held) -> None:
    """More late queries than there are threads: the other three sources answer all the same."""
    with ThreadPoolExecutor(2) as few, agent_of(workspace, Domain.CODE, few, encoder=held) as agent:
        for number in range(12):
            response = agent.recall(asked(f"payment error {number}", timeout_ms=20))
            assert response.retrieval["dense"] == "timeout"
        response = agent.recall(asked("payment error", timeout_ms=GENEROUS_MS))
        held.go.set()
        assert response.retrieval["sparse"] == "ok"
        assert response.items


def test_a_plan_that_counts_one_source_only(workspace: Settings, pool: ThreadPoolExecutor) -> None:
    """What the others find has a score of 0 by this plan; beside other domains every place is worth what it is."""
    weights = SourceWeights(dense=0, sparse=0, fulltext=0, structured=1)
    with agent_of(workspace, Domain.CODE, pool, plan=PlanSettings(weights=weights)) as agent:
        items = agent.recall(asked("post_entry", top_k=100, explain=True)).items
    found = [(item.citation.title, item.explanation and item.explanation.combined) for item in items]
    assert found[0] == ("post_entry", 1)
    assert {combined for _, combined in found[1:]} == {0}
    with agent_of(workspace, Domain.CODE, pool, plan=PlanSettings()) as agent:
        usual = agent.recall(asked("post_entry", top_k=100)).items
    assert [item.score for item in items] == pytest.approx([item.score for item in usual]), "one scale for all plans"
