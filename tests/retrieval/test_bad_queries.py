"""Queries that nobody should send, to a real engine over all four domains: answers, clear errors or named gaps."""

import itertools
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from questions import query, question_of
from recall_workspace import HANDLERS, OPS, RUNBOOK, current_file, publish, write_workspace

from nornweave.ask.engine import Engine
from nornweave.config import Settings
from nornweave.core.errors import NornWeaveError, QueryError
from nornweave.core.types import Domain

SOURCES = {"dense", "sparse", "fulltext", "structured"}


@pytest.fixture(scope="module")
def engine(workspace: Settings) -> Iterator[Engine]:
    with Engine(workspace) as engine:
        yield engine


def is_accounted_for(result: Mapping[str, Any]) -> None:
    """Check that an answer says of every domain that was asked what happened there."""
    gaps = {gap["domain_id"]: gap["reason"] for gap in result["coverage_gaps"]}
    assert set(result["coverage"]) == set(result["domains_queried"])
    found = {item["citation"]["domain_id"] for item in result["items"]}
    for domain, covered in result["coverage"].items():
        if not covered["searched"]:
            assert gaps[domain]
            continue
        states = covered["retrieval"]
        assert set(states) == SOURCES
        assert set(states.values()) <= {"ok", "empty", "timeout", "failed"}
        for source, state in states.items():
            if state in {"timeout", "failed"}:
                assert any(source in notice for notice in covered["notices"])
        if domain in found:
            assert "ok" in states.values()
    scores = [item["score"]["value"] for item in result["items"]]
    # Scores within 1e-6 are ties, and each is rounded by half of that at the most.
    assert all(before >= after - 2.1e-6 for before, after in itertools.pairwise(scores))
    assert all(0 <= score <= 1 for score in scores)
    assert len(result["items"]) <= 100
    json.dumps(result)


STRANGE = {
    "one letter": "x",
    "one digit": "4",
    "one mark": "?",
    "a word of 4,096 letters": "x" * 4096,
    "4,096 characters": ("what is the retry limit " * 200)[:4096],
    "emoji": "🙂🙂",
    "joined emoji": "👩‍👩‍👧‍👦 🏳️‍🌈",
    "drop table": "'; drop table chunks; --",
    "or 1=1": "' or '1'='1' /*",
    "percent": "%",
    "underscore": "_",
    "quoted percent": '"%"',
    "quoted quote": "\"'\" '\"'",
    "catastrophic regex": "(a+)+$",
    "open class": "[[",
    "quoted regex": '"(a+)+$" `[[` ".*"',
    "backslashes": "\\ \\d \\u0000 C:\\temp\\x",
    "Chinese": "支付失败时怎么重试?",
    "Arabic": "ماذا يحدث عند فشل الدفع؟",
    "Russian": "что происходит, когда платёж отклонён?",
    "Hindi": "भुगतान विफल होने पर क्या होता है",
    "Turkish": "İstanbul'da ödeme ılık mı",
    "combining marks": "e\u0301" * 50,
    "zero width": "\u200b\u200d\ufeff",
    "right to left override": "\u202epayment\u202c",
    "line separators": "a\u2028b\u2029c\x85d",
    "control characters": "\x01\x02\x7f\x1b[31m",
    "private use": "\ue000\U0010ffff",
    "function words": "what is the of and",
    "punctuation": "!!! ... ;;; ---",
    "quoted punctuation": '"=>" "::" "{}"',
    "empty quotes": '"" `` “”',
    "one open quote": '"',
    "quotes only": '"' * 500,
    "JSON": '{"query": "x", "top_k": -1}',
    "HTML": "<script>alert(1)</script>",
    "template": "{{7*7}} ${jndi:ldap://x} %s %n {0}",
    "path": "../../../../etc/passwd",
    "date that is none": "on 2026-99-99 and 31 February 2026",
    "dates in other digits": "٢٠٢٦-٠١-١٦ and 3 may ٢٠٢٦",
    "number": "1e999 -0 NaN Infinity 0x" + "f" * 50,
    "digits": "9" * 4096,
    "dots": "." * 4096,
    "slashes": "/" * 4096,
    "parentheses": "(" * 2048 + ")" * 2048,
    "question marks": "?" * 4096,
    "blank space around": "\n\t  payment  \u00a0\n",
    "lines": "payment\n" * 500,
    "pasted code": HANDLERS,
    "pasted log": OPS,
    "pasted page": RUNBOOK,
    "traceback": "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\nKeyError: 'amount'",
    "base64": "QUJD" * 1000,
    "many clauses": "what is a and " * 250 + "what is b?",
    "many identifiers": "aB_c.d::e " * 400,
    "long s": "decisions of ſep 2026",
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_queries_are_answered(engine: Engine, name: str) -> None:
    everything: dict[str, Any] = {"expand": "on", "rerank": "on", "explain": True, "top_k": 100}
    for options in ({}, everything):
        started = time.process_time()
        result = query(engine, question_of(STRANGE[name], **options))
        seconds = time.process_time() - started
        is_accounted_for(result)
        assert result["coverage_gaps"] == []
        assert seconds < 60, "0.2 s here; an expression that backtracks over what was pasted takes minutes"


@pytest.mark.parametrize("timeout_ms", [-1000, 0, 1, 2, 5])
def test_hardly_any_time_is_no_error(engine: Engine, timeout_ms: int) -> None:
    for name in ("one letter", "4,096 characters", "many clauses", "pasted code", "quoted regex"):
        result = query(engine, question_of(STRANGE[name], timeout_ms=timeout_ms))
        is_accounted_for(result)


def test_nothing_published_and_everything_damaged(tmp_path: Path) -> None:
    """Every domain fails in its own way: four named gaps, no items, no exception."""
    settings = write_workspace(tmp_path)
    publish(settings, Domain.DOCUMENTATION, Domain.CONVERSATIONS, Domain.RESEARCH)
    current_file(settings, Domain.DOCUMENTATION).write_bytes(b"")
    current_file(settings, Domain.CONVERSATIONS).unlink()
    pointer = current_file(settings, Domain.RESEARCH).with_name("CURRENT")
    pointer.write_bytes(b"\xff\xfe")
    with Engine(settings) as engine:
        for name in ("one letter", "pasted log"):
            result = query(engine, question_of(STRANGE[name]))
            is_accounted_for(result)
            assert result["items"] == []
            reasons = {gap["domain_id"]: gap["reason"] for gap in result["coverage_gaps"]}
            assert set(reasons) == {domain.value for domain in Domain}
            assert "nornweave sync" in reasons["code"]
            assert "gen-000001-000.duckdb" in reasons["documentation"]
            assert "gen-000001-000.duckdb" in reasons["conversations"]
            assert "CURRENT" in reasons["research"]
        with pytest.raises(QueryError):
            query(engine, question_of(" "))


PIECES = st.sampled_from(
    [
        *("payment", "handle_payment_error", "src/payments", "2026-01-16", "ſep 2026", "Dana", "#ops", "and what is"),
        *('"', "`", "“", "”", "'", "%", "_", "--", ";", "(", ")", "[", "]", "=>", "::", "?", "\n", "\t", "\\", "$"),
        *("支付", "İ", "ß", "e\u0301", "\u200b", "🙂", "٣", "what", "the", "0x7f", "E0382:", "v2.1", "errno=104"),
    ]
)
ANY_TEXT = st.lists(st.one_of(PIECES, st.text(st.characters(), max_size=6)), max_size=12).flatmap(
    lambda pieces: st.sampled_from(["", " "]).map(lambda joint: joint.join(pieces))
)


@settings(max_examples=120)
@given(ANY_TEXT, st.sampled_from(["auto", "on", "off"]), st.booleans())
@example("paymentpayment;paymentpayment_thepayment\u00b50#B", "on", False)  # found by another wording alone
def test_any_text_is_answered_or_refused(engine: Engine, text: str, expand: Any, explain: bool) -> None:
    question = question_of(text, expand=expand, explain=explain)
    try:
        result = query(engine, question)
    except NornWeaveError as error:
        assert isinstance(error, QueryError)
        assert error.field == "query"
        assert not text.strip() or "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text)
        return
    is_accounted_for(result)
    assert not result["coverage_gaps"]
    assert query(engine, question)["items"] == result["items"]
