"""Asking all domains at once: who is asked, how answers merge, and who fails alone."""

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from held_encoder import Held
from hypothesis import given
from hypothesis import strategies as st
from questions import question_of
from recall_workspace import agent_of, write_workspace
from waiting import GENEROUS_MS, HANGS_S, SOON_S

from nornweave.ask import pipeline as recipe
from nornweave.ask.route import choose_agents
from nornweave.ask.search import fan_out
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.fan_out import merge_items, split_clauses
from nornweave.ask.search.lanes import AgentKey, Lanes
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import Citation, RecallItem, RecallResponse
from nornweave.ask.views.answer import FusionResult, answer_document
from nornweave.config import Settings
from nornweave.config.workspace import FusionSettings
from nornweave.core.errors import EncoderError, QueryError
from nornweave.core.types import ChunkId, Domain, present
from nornweave.models.encoders.hashing import HashEncoder

COMPOUND = "what is the retry limit of payments and who owns the ledger service?"


def answer(
    question: Question, agents: Mapping[Domain, Agent], lanes: Lanes, settings: FusionSettings | None = None
) -> FusionResult:
    return answer_document(recipe.answer(question, agents, lanes, settings or FusionSettings()))


def one_pool(pool: Executor) -> Lanes:
    return Lanes(lambda _: pool, lambda: pool)


class Slow(HashEncoder):
    """An encoder that takes its time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(64)
        self.seconds = seconds

    def encode_query(self, text: str) -> Any:
        time.sleep(self.seconds)
        return super().encode_query(text)


class Broken(HashEncoder):
    def encode_query(self, text: str) -> Any:
        raise EncoderError("the model is gone")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give late answers all the time they need to hand over what they have; usually it is 20 ms."""
    monkeypatch.setattr(fan_out, "GRACE_S", SOON_S)


@pytest.fixture(scope="module")
def pools() -> Iterator[tuple[ThreadPoolExecutor, ThreadPoolExecutor]]:
    with ThreadPoolExecutor(8) as questions, ThreadPoolExecutor(16) as sources:
        yield questions, sources


@pytest.fixture(scope="module")
def questions(pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]) -> Lanes:
    return one_pool(pools[0])


class Agents:
    """Opens agents over the workspace and closes them in the end."""

    def __init__(self, settings: Settings, sources: ThreadPoolExecutor, stack: ExitStack) -> None:
        self.settings, self.sources, self.stack = settings, sources, stack

    def of(self, *domains: Domain, **encoders: HashEncoder) -> dict[Domain, Agent]:
        return {
            domain: self.stack.enter_context(
                agent_of(self.settings, domain, self.sources, encoder=encoders.get(domain.value))
            )
            for domain in domains or tuple(Domain)
        }


@pytest.fixture
def agents(workspace: Settings, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]) -> Iterator[Agents]:
    with ExitStack() as stack:
        yield Agents(workspace, pools[1], stack)


@pytest.fixture(scope="module")
def everybody(
    workspace: Settings, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> Iterator[dict[Domain, Agent]]:
    with ExitStack() as stack:
        yield Agents(workspace, pools[1], stack).of()


def places(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(item["citation"]["domain_id"], item["citation"]["source_path"]) for item in result["items"]]


# Merging


def item(chunk_id: str, score: float, domain: Domain = Domain.CODE) -> RecallItem:
    citation = Citation(
        domain_id=domain,
        source_id="s",
        source_path="p",
        timestamp=None,
        line_range=None,
        char_range=(0, 1),
        page=None,
        section=None,
        message_ids=None,
        url=None,
        title=None,
        revision=None,
        stale=False,
    )
    return RecallItem(chunk_id=ChunkId(chunk_id), content="c", score=score, citation=citation, sources={})


def ids(items: tuple[RecallItem, ...]) -> list[str]:
    return [one.chunk_id for one in items]


def test_merging_by_hand() -> None:
    merged = merge_items([[item("b", 0.5), item("a", 0.5)], [item("d", 0.75), item("c", 0.5)]], 4)
    assert ids(merged) == ["d", "b", "a", "c"], "ties in the order of the answers, each in its own order"
    assert ids(merge_items([[item("a", 0.25)], [item("a", 0.5)]], 10)) == ["a"]
    assert merge_items([[item("a", 0.25)], [item("a", 0.5)]], 10)[0].score == 0.5
    assert merge_items([], 5) == merge_items([[], []], 5) == ()


ANSWERS = st.lists(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.0, 0.1, 0.5, 1.0])), max_size=8), max_size=4
)


@given(ANSWERS, st.integers(1, 12))
def test_merging_keeps_the_best_of_every_chunk(drawn: list[list[tuple[int, float]]], top_k: int) -> None:
    answers = [sorted((item(f"{chunk}", score) for chunk, score in rows), key=lambda one: -one.score) for rows in drawn]
    merged = merge_items(answers, top_k)
    best: dict[str, float] = {}
    for one in (one for items in answers for one in items):
        best[one.chunk_id] = max(best.get(one.chunk_id, 0.0), one.score)
    assert [one.score for one in merged] == sorted(best.values(), reverse=True)[:top_k]
    assert all(one.score == best[one.chunk_id] for one in merged)
    assert len(set(ids(merged))) == len(merged)
    assert merge_items(answers, top_k + 5)[:top_k] == merged, "fewer are the first of more"


# Who is asked


def test_without_a_sign_everybody_is_asked(everybody: dict[Domain, Agent]) -> None:
    assert list(choose_agents(question_of("payments"), everybody)) == list(Domain)


def test_the_domains_named_are_asked(everybody: dict[Domain, Agent]) -> None:
    question = question_of("payments", domains=(Domain.RESEARCH, Domain.CODE, Domain.RESEARCH))
    assert list(choose_agents(question, everybody)) == [Domain.CODE, Domain.RESEARCH]


def test_a_filter_names_its_domain(everybody: dict[Domain, Agent]) -> None:
    """ "In the docs" asks documentation only; a filter on code wants code asked all the same."""
    text = "in the docs, what is the rate limit?"
    assert list(choose_agents(question_of(text), everybody)) == [Domain.DOCUMENTATION]
    question = question_of(text, filters={Domain.CODE: {"language": "python"}})
    assert list(choose_agents(question, everybody)) == [Domain.CODE, Domain.DOCUMENTATION]


def test_a_filter_on_a_domain_that_is_not_asked_is_refused(everybody: dict[Domain, Agent]) -> None:
    question = question_of(
        text="payments", domains=(Domain.RESEARCH, Domain.DOCUMENTATION), filters={Domain.CODE: {"language": "python"}}
    )
    with pytest.raises(QueryError, match="asked are: documentation, research") as raised:
        choose_agents(question, everybody)
    assert raised.value.field == "filters.code"


def test_a_domain_that_is_not_served_is_refused(agents: Agents) -> None:
    with pytest.raises(QueryError, match="'code' is not served; there are: documentation") as raised:
        choose_agents(question_of("x", domains=(Domain.CODE,)), agents.of(Domain.DOCUMENTATION))
    assert raised.value.field == "domains"


def test_a_wrong_filter_is_refused_before_anybody_is_asked(
    tmp_path: Path, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]
) -> None:
    """Nothing is published here, and a millisecond is too little for any answer: the filter is wrong all the same."""
    with ExitStack() as stack:
        empty = Agents(write_workspace(tmp_path), pools[1], stack).of()
        question = question_of("x", filters={Domain.CODE: {"colour": "red"}}, timeout_ms=1)
        with pytest.raises(QueryError, match=r"allowed here: author, category, .*language") as raised:
            answer(question, empty, one_pool(pools[0]))
        assert raised.value.field == "filters.code.colour"


def test_at_most_so_many_are_asked(everybody: dict[Domain, Agent], questions: Lanes) -> None:
    result = answer(question_of("payments"), everybody, questions, FusionSettings(fusion_max_sources=2))
    assert len(result["domains_queried"]) == 2


# Answers


def test_the_best_of_all_domains(everybody: dict[Domain, Agent], questions: Lanes) -> None:
    result = answer(question_of("jitter lowered duplicate authorizations", top_k=5), everybody, questions)
    assert places(result)[0] == ("research", "storms.md")
    scores = [one["score"]["value"] for one in result["items"]]
    assert scores == sorted(scores, reverse=True)
    assert len(result["items"]) == 5
    assert result["domains_queried"] == [domain.value for domain in Domain]
    assert set(result["coverage"]) == set(result["domains_queried"])
    assert result["coverage_gaps"] == []
    for covered in result["coverage"].values():
        assert covered["searched"] is True
        assert set(covered["retrieval"]) == {"dense", "sparse", "fulltext", "structured"}
        assert covered["total_searched"] > 0
    assert result["stats"]["final_items"] == 5
    assert result["stats"]["total_items"] >= 5


def test_one_moment_counts_in_every_domain_and_between_them(everybody: dict[Domain, Agent], questions: Lanes) -> None:
    def recencies(now: datetime) -> list[tuple[str, float]]:
        found = answer(question_of("payment error", explain=True, now=now), everybody, questions)
        return [(one["chunk_id"], one["score"]["signals"]["recency"]) for one in found["items"]]

    today = present()
    soon, later = recencies(today), dict(recencies(today + timedelta(days=90)))
    assert recencies(today) == soon
    aged = [(value, later[chunk]) for chunk, value in soon if value and chunk in later]
    assert aged
    assert all(then < value for value, then in aged)


def test_a_compound_question_is_asked_by_its_clauses_too(everybody: dict[Domain, Agent], questions: Lanes) -> None:
    clauses = split_clauses(COMPOUND)
    assert len(clauses) == 2
    whole = answer(question_of(COMPOUND, top_k=50), everybody, questions)
    # Relevance, and not the value: that also has how well the domain answers the whole question.
    scores = {one["chunk_id"]: one["score"]["signals"]["score"] for one in whole["items"]}
    for clause in clauses:
        best = answer(question_of(clause, top_k=1), everybody, questions)["items"][0]
        assert scores[best["chunk_id"]] >= best["score"]["signals"]["score"]


# Who fails, fails alone


@pytest.mark.usefixtures("patient")
def test_a_domain_that_hangs_costs_the_next_questions_nothing(agents: Agents, questions: Lanes, held: Held) -> None:
    """Each question leaves a call behind that hangs; twenty of them hold more threads than there are for sources."""
    domains = agents.of(Domain.CODE, Domain.DOCUMENTATION, code=held)
    for number in range(20):
        answer(question_of(f"rate limit {number}", timeout_ms=20), domains, questions)
    result = answer(question_of("rate limit", timeout_ms=GENEROUS_MS), domains, questions)
    assert set(result["coverage"]["documentation"]["retrieval"].values()) <= {"ok", "empty"}
    assert result["coverage"]["code"]["retrieval"]["sparse"] == "ok"
    assert places(result)[0] == ("documentation", "api.md")


def test_a_broken_encoder_is_named_per_domain(agents: Agents, questions: Lanes) -> None:
    result = answer(question_of("payment error"), agents.of(code=Broken(64)), questions)
    assert result["coverage"]["code"]["retrieval"]["dense"] == "failed"
    assert "the model is gone" in str(result["coverage"]["code"]["notices"])
    assert result["coverage"]["documentation"]["retrieval"]["dense"] == "ok"
    assert result["coverage_gaps"] == []
    assert any(where == "code" for where, _ in places(result))


def test_a_closed_agent_is_a_gap(agents: Agents, questions: Lanes) -> None:
    domains = agents.of(Domain.CODE, Domain.DOCUMENTATION)
    domains[Domain.CODE].close()
    result = answer(question_of("payment"), domains, questions)
    assert [gap["reason"] for gap in result["coverage_gaps"]] == ["is shutting down; ask again later"]
    assert result["items"]


@pytest.mark.usefixtures("patient")
def test_the_clauses_share_the_deadline_of_the_question(agents: Agents, questions: Lanes) -> None:
    """The question and two clauses, 1 s each to encode, in 1.5 s: what the question itself found is not lost."""
    domains = agents.of(Domain.CODE, code=Slow(1))
    assert len(split_clauses(COMPOUND)) == 2
    result = answer(question_of(COMPOUND, timeout_ms=1500), domains, questions)
    assert result["coverage_gaps"] == []
    assert result["items"]
    assert result["coverage"]["code"]["notices"], "what was cut short is named"


def test_without_a_deadline_everybody_is_waited_for(agents: Agents, questions: Lanes) -> None:
    domains = agents.of(Domain.CODE, code=Slow(0.3))
    result = answer(question_of("payment error"), domains, questions)
    assert result["coverage"]["code"]["retrieval"]["dense"] == "ok"


# known traps of asking several sources at once


class Hanging(Agent):
    """An agent that does not answer for minutes, or until it is let go."""

    go = threading.Event()

    def recall(self, question: Question) -> RecallResponse:
        self.go.wait(HANGS_S)
        return super().recall(question)


@pytest.fixture
def hanging(workspace: Settings, pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor]) -> Iterator[Agent]:
    Hanging.go = threading.Event()
    with agent_of(workspace, Domain.RESEARCH, pools[1], kind=Hanging) as agent:
        yield agent
        Hanging.go.set()


def test_trap_a_mixed_speed_question_keeps_what_is_fast(agents: Agents, hanging: Agent) -> None:
    """A domain that reaches the deadline must not lose the answers of the fast ones."""
    domains = {**agents.of(Domain.CODE, Domain.DOCUMENTATION, Domain.CONVERSATIONS), Domain.RESEARCH: hanging}
    with ExitStack() as stack:
        threads: dict[AgentKey, Executor] = {domain: stack.enter_context(ThreadPoolExecutor(2)) for domain in Domain}
        own = Lanes(threads.__getitem__, lambda: stack.enter_context(ThreadPoolExecutor(2)))
        stack.callback(Hanging.go.set)
        # Twice as often as the domain that hangs has threads: it must not take those of the others.
        for number in range(4):
            answer(question_of(f"rate limit {number}", timeout_ms=20), domains, own)
        started = time.monotonic()
        result = answer(question_of("payment error", timeout_ms=GENEROUS_MS), domains, own)
        assert time.monotonic() - started < SOON_S
    assert result["items"]
    assert {where for where, _ in places(result)} <= {"code", "documentation", "conversations"}
    assert result["coverage_gaps"] == [
        {"domain_id": "research", "agent_id": "research-memory", "reason": f"timeout after {GENEROUS_MS}ms"}
    ]
