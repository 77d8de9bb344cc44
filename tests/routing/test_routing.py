"""Routing: soft signals, types of question, domains to ask; compound questions by precision."""

import math
import time

import pytest
from growth import assert_subquadratic
from hypothesis import given
from hypothesis import strategies as st

from nornweave.ask.fuse.rank import QueryType, authority_order, query_type
from nornweave.ask.route import CLEAR_LEAD, choose_domains, combine_signals, domain_signals
from nornweave.ask.search.fan_out import split_clauses
from nornweave.core.types import Domain

CODE, DOCS, TALK, PAPERS = Domain
NEUTRAL = dict.fromkeys(Domain, 0.5)


@pytest.mark.parametrize("query", ["", "?", "hello", "retry", "🙂", "where is handlePaymentError", "日本語", "\x00"])
def test_without_a_name_all_domains_are_equal(query: str) -> None:
    assert dict(domain_signals(query)) == NEUTRAL
    assert choose_domains(domain_signals(query)) == tuple(Domain)


def test_signals_are_what_the_formula_says() -> None:
    # one domain is named: σ(4 − 4/4) and σ(−4/4)
    signals = domain_signals("what do the papers on backoff say")
    assert signals[PAPERS] == pytest.approx(1 / (1 + math.exp(-3)))
    assert signals[CODE] == pytest.approx(1 / (1 + math.exp(1)))


@given(st.text(max_size=200))
def test_signals_stay_in_range_and_repeat(query: str) -> None:
    signals = domain_signals(query)
    assert set(signals) == set(Domain)
    assert all(0.0 <= value <= 1.0 for value in signals.values())
    assert signals == domain_signals(query)


@pytest.mark.parametrize(("query", "domains"), [
    ("in the docs, what is the retry limit", {DOCS}), ("do the docs and the code differ on refunds?", {DOCS, CODE}),
    ("do the docs disagree with the code?", {DOCS, CODE}), ("retry storms #payments-oncall", {TALK}),
    ("what did we say in slack about the code review", {TALK}), ("which papers compare backoff", {PAPERS}),
])  # fmt: skip
def test_a_named_domain_narrows(query: str, domains: set[Domain]) -> None:
    assert set(choose_domains(domain_signals(query))) == domains


@pytest.mark.parametrize("query", [
    "deadlock in the worker thread", "close a channel in go", "#include <stdio.h> fails", "#fff",
    "how is the paper invoice printed", "in the manual mode", "payment declined with the code 402",
    "slack integration", "how does the chat API work", "code of conduct",
])  # fmt: skip
def test_what_only_sounds_like_a_domain_narrows_nothing(query: str) -> None:
    assert set(choose_domains(domain_signals(query))) == set(Domain)


def test_the_strongest_come_first_up_to_the_limit() -> None:
    signals = {CODE: 0.4, DOCS: 0.7, TALK: 0.7, PAPERS: 0.3}
    assert choose_domains(signals) == (DOCS, TALK, CODE, PAPERS)
    assert choose_domains(signals, max_sources=2) == (DOCS, TALK)
    assert choose_domains(signals, [PAPERS, CODE]) == (CODE, PAPERS)
    assert choose_domains({}, [PAPERS, DOCS]) == (DOCS, PAPERS)
    assert choose_domains(signals, []) == ()


SIGNALS = st.dictionaries(st.sampled_from(Domain), st.floats(0, 1))


@given(SIGNALS, st.sets(st.sampled_from(Domain)), st.integers(1, 5))
def test_chosen_are_allowed_few_and_the_strongest(
    signals: dict[Domain, float], candidates: set[Domain], limit: int
) -> None:
    chosen = choose_domains(signals, candidates, limit)
    assert len(chosen) == len(set(chosen)) <= limit
    assert set(chosen) <= candidates
    assert bool(chosen) == bool(candidates)
    strength = {domain: signals.get(domain, 0.5) for domain in candidates}
    for left_out in candidates - set(chosen):
        full = len(chosen) == limit and all(strength[left_out] <= strength[one] for one in chosen)
        assert full or strength[left_out] <= max(strength.values()) - CLEAR_LEAD


def test_evidence_moves_the_odds() -> None:
    # mean 0.4; +0.3 · 4 = 1.2 and −0.1 · 4 = −0.4 in log-odds
    combined = combine_signals(NEUTRAL, {CODE: 0.7, DOCS: 0.3, TALK: 0.3, PAPERS: 0.3})
    assert combined[CODE] == pytest.approx(1 / (1 + math.exp(-1.2)))
    assert combined[DOCS] == pytest.approx(1 / (1 + math.exp(0.4)))


def test_strong_evidence_overrules_what_a_query_names() -> None:
    cues = {CODE: 0.7, DOCS: 0.4, TALK: 0.4, PAPERS: 0.4}
    combined = combine_signals(cues, {CODE: 0.1, DOCS: 0.1, TALK: 0.1, PAPERS: 1.0})
    assert max(combined, key=lambda domain: combined[domain]) is PAPERS


@given(SIGNALS, SIGNALS)
def test_combined_signals_stay_in_range(cues: dict[Domain, float], evidence: dict[Domain, float]) -> None:
    combined = combine_signals(cues, evidence)
    assert set(combined) == set(Domain)
    assert all(0.0 <= value <= 1.0 for value in combined.values())
    if len(set(evidence.values())) <= 1:
        for domain in Domain:
            assert combined[domain] == pytest.approx(cues.get(domain, 0.5), abs=0.002)


@given(st.floats(0.01, 0.99), st.floats(0, 0.9))
def test_more_evidence_never_lowers_a_domain(cue: float, found: float) -> None:
    rest = {DOCS: 0.4, TALK: 0.2, PAPERS: 0.6}
    less = combine_signals({CODE: cue}, {**rest, CODE: found})
    more = combine_signals({CODE: cue}, {**rest, CODE: found + 0.1})
    assert more[CODE] > less[CODE]
    assert all(more[domain] < less[domain] for domain in rest)


@pytest.mark.parametrize(("query", "expected"), [
    ("how does it work", QueryType.CURRENT_BEHAVIOUR),
    ("What does it do?", QueryType.CURRENT_BEHAVIOUR),
    ("what does the payment module return on errors", QueryType.CURRENT_BEHAVIOUR),
    ("what happens when a refund fails", QueryType.CURRENT_BEHAVIOUR),
    ("why is the ledger in Go", QueryType.INTENDED_DESIGN),
    ("the intended design of idempotency", QueryType.INTENDED_DESIGN),
    ("who decided on Go", QueryType.HISTORICAL_DECISION),
    ("what we agreed on retries", QueryType.HISTORICAL_DECISION),
    ("why did we decide against SOAP", QueryType.HISTORICAL_DECISION),
    ("refund window", QueryType.AMBIGUOUS),
    ("whyever", QueryType.AMBIGUOUS),
    ("", QueryType.AMBIGUOUS),
])  # fmt: skip
def test_the_type_of_a_query(query: str, expected: QueryType) -> None:
    assert query_type(query) is expected


def test_authority_follows_the_type() -> None:
    assert authority_order(QueryType.CURRENT_BEHAVIOUR) == (CODE, DOCS, TALK, PAPERS)
    assert authority_order(QueryType.INTENDED_DESIGN) == (DOCS, CODE, TALK, PAPERS)
    assert authority_order(QueryType.HISTORICAL_DECISION) == (TALK, DOCS, CODE, PAPERS)
    assert authority_order(QueryType.AMBIGUOUS) == (CODE, DOCS, TALK, PAPERS)


# Compound questions

COMPOUND = [
    (
        "what is the retry limit and who owns the payment service?",
        ("what is the retry limit", "who owns the payment service?"),
    ),
    ("indoor air quality and are the doors locked", ("indoor air quality", "are the doors locked")),
    (
        "What is the retry limit? Who owns the payment service?",
        ("What is the retry limit?", "Who owns the payment service?"),
    ),
    (
        "what is the webhook timeout; how do I rotate API keys?",
        ("what is the webhook timeout", "how do I rotate API keys?"),
    ),
    (
        "Explain the refund flow, and who approved the ledger migration?",
        ("Explain the refund flow", "who approved the ledger migration?"),
    ),
    (
        "How are refunds validated and which team owns settlement exports? And where is the webhook runbook?",
        ("How are refunds validated", "which team owns settlement exports?", "where is the webhook runbook?"),
    ),
    (
        'does the gateway retry and where do we handle "connection refused and what now"?',
        ("does the gateway retry", 'where do we handle "connection refused and what now"?'),
    ),
]


@pytest.mark.parametrize(("query", "clauses"), COMPOUND)
def test_two_questions_in_one_are_split(query: str, clauses: tuple[str, ...]) -> None:
    assert split_clauses(query) == clauses


@pytest.mark.parametrize("query", [
    # joint phrases
    "search and replace",
    "what are the read and write permissions of the payment service?",
    "pros and cons of idempotency keys",
    "how do I install and configure the SDK",
    # shared parts
    "when and why was the ledger rewritten?",
    "what is and what was the retry limit of the gateway?",
    "which charity might John work with and why?",
    "how to read a csv file and how to send an email in python",
    "In the sandbox, what is the rate limit and what is the refund window size?",
    # the second leans on the first
    "what is the retry limit and who set it?",
    "what challenges does Sam face, and how does he address them?",
    "what is the timeout of the gateway and what is the default?",
    "What is the retry limit? Who set that?",
    "What are the inputs and what are the outputs?",
    "Who did Evan meet in Canada and what did Evan bring home?",
    # embedded and relative clauses
    "who decides what is due and what is late?",
    "tell me who is on call and who is on holiday",
    "explain how retries work and what the limit is",
    "what is the service which handles refunds and who may call the ledger API?",
    # statements, quotes, code
    "Stromal cells surround tumours and are the major source of growth factors.",
    '"what is the limit and who owns the service"',
    "what is `a and what is the limit`",
    "(what is the limit and who owns the payment service)",
    "if (x) { what is y } and who owns the payment service",
    # more than three
    "who owns the ledger? who owns the gateway? who owns the webhook sender? who owns the risk engine?",
    "",
    " ",
    "and",
    "?",
])  # fmt: skip
def test_in_doubt_a_question_stays_whole(query: str) -> None:
    assert split_clauses(query) == (query,)


PIECES = st.lists(
    st.sampled_from(
        (
            "what is the retry limit",
            "who owns the payment service",
            "how do I rotate API keys",
            "where is the ledger deployed",
            "indoor air quality",
            "why",
            "it",
            "how",
            "Anna",
            "and",
            "also",
            ",",
            ";",
            "?",
            "? ",
            '"',
            "(",
            ")",
            "`",
            "'",
            "the service that handles refunds",
            "are the doors locked",
            "\n",
        )
    ),
    max_size=9,
)


ASKED = (
    "what is the retry limit",
    "who owns the payment service",
    "how do I rotate API keys",
    "where is the ledger deployed",
    "indoor air quality",
    'who said "no and what is next"',
    "what is it",
)
JOINTS = (" and ", "? ", "; ", ", and ", " and also ", " or ", ", ", "? And ", '" and ')
JOINED = st.lists(st.tuples(st.sampled_from(ASKED), st.sampled_from(JOINTS)), min_size=1, max_size=5).map(
    lambda parts: "".join(question + joint for question, joint in parts) + "which team runs settlement exports?"
)


@given(st.one_of(JOINED, PIECES.map(" ".join), PIECES.map("".join), st.text(max_size=100)))
def test_clauses_cover_the_question_and_do_not_split_again(query: str) -> None:
    clauses = split_clauses(query)
    assert 1 <= len(clauses) <= 3
    if len(clauses) == 1:
        assert clauses == (query,)
        return
    rest = query
    for clause in clauses:
        between, found, rest = rest.partition(clause)
        assert found == clause
        assert set(between.lower().replace(",", " ").replace(";", " ").split()) <= {"and", "also", "plus", "&"}
        assert split_clauses(clause) == (clause,)
    assert not rest.strip()


@given(st.lists(st.sampled_from([query for query, _ in COMPOUND]), min_size=1, max_size=1))
def test_spaces_around_a_question_do_not_matter(queries: list[str]) -> None:
    assert split_clauses(f"  {queries[0]} \n") == split_clauses(queries[0])


REPEATED = ["a", "_", "Aa", "in the ", "#", "; ", ". ", "what is ", "how many ", "did Ab ", "@a", "and who ", "'a", "("]
REPEATED += ["{ ", " "]


@pytest.mark.parametrize("piece", REPEATED)
def test_the_longest_query_is_read_in_linear_time(piece: str) -> None:
    """It takes 5 ms; with a regular expression that runs away it takes seconds."""

    def read(query: str) -> None:
        domain_signals(query)
        query_type(query)

    assert_subquadratic(read, lambda size: ("a" + piece * size)[:size], 4_096)


@pytest.mark.parametrize("piece", REPEATED)
def test_splitting_as_long_a_query_as_is_split_takes_milliseconds(piece: str) -> None:
    """Of blank space the cost grows with the square, 6 ms at 600 characters; one that backtracks takes minutes."""
    started = time.thread_time()
    split_clauses(("a" + piece * 600)[:600])
    assert time.thread_time() - started < 5
