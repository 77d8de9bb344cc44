"""The trace id of a request: the caller's where it sends a valid one, else a new one."""

import json
import os
import re
import subprocess
import sys

import pytest
from api_support import Ask
from scripted_engine import ScriptedEngine

from api.state import callers_trace_id, current_trace_id

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
FULL = f"00-{TRACE}-{PARENT}-01"


@pytest.mark.parametrize(
    "header", [FULL, f"00-{TRACE}-{PARENT}-00", f"cc-{TRACE}-{PARENT}-01", f"{FULL.replace('00', '01', 1)}-more"]
)
def test_a_valid_traceparent_names_the_trace(header: str) -> None:
    assert callers_trace_id({"headers": [(b"traceparent", header.encode())]}) == TRACE


@pytest.mark.parametrize("header", [
    "", TRACE, f"00-{TRACE}", f"ff-{TRACE}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01",
    f"00-{TRACE}-{'0' * 16}-01", FULL.upper(), f"{FULL}-more", f"{FULL}x", f"0-{TRACE}-{PARENT}-01",
    f"00-{TRACE[1:]}-{PARENT}-01", f"00-{TRACE[1:]}ß-{PARENT}-01",
])  # fmt: skip
def test_what_is_not_a_traceparent_names_none(header: str) -> None:
    assert callers_trace_id({"headers": [(b"traceparent", header.encode())]}) is None


def test_two_of_them_name_none() -> None:
    assert callers_trace_id({"headers": [(b"traceparent", FULL.encode())] * 2}) is None
    assert callers_trace_id({"headers": []}) is None


def test_the_answer_has_the_callers_trace_id(look: Ask, still_engine: ScriptedEngine) -> None:
    answer = look("POST", "/query", json={"query": "pay"}, headers={"traceparent": FULL}).json()
    assert answer["trace_id"] == TRACE
    assert still_engine.questions[0].trace_id == TRACE
    body = {"original_text": "pay", "responses": []}
    assert look("POST", "/fuse", json=body, headers={"traceparent": FULL}).json()["trace_id"] == TRACE


def test_otherwise_it_has_a_new_one_each_time(look: Ask) -> None:
    headers = {"traceparent": f"ff-{TRACE}-{PARENT}-01"}
    first, second = (look("POST", "/query", json={"query": "pay"}, headers=headers).json() for _ in range(2))
    assert re.fullmatch("[0-9a-f]{32}", first["trace_id"])
    assert first["trace_id"] != second["trace_id"] != TRACE
    assert first["query_id"] != second["query_id"]
    assert current_trace_id() == "", "outside of requests there is none"


def test_log_lines_are_json_where_that_is_wanted() -> None:
    script = (
        "import logging, os; from api.state import log_trace_ids, _trace_id; log_trace_ids(os.environ)\n"
        "_trace_id.set('ab' * 16); logging.getLogger('x').warning('one\\x1b[2J %s', 'line')\n"
        "_trace_id.set('')\n"
        "try: 1 / 0\nexcept ZeroDivisionError: logging.getLogger('y').exception('a defect')\n"
    )
    environment = {**os.environ, "NORNWEAVE_LOG_FORMAT": "json", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    first, second = map(json.loads, done.stderr.splitlines())
    assert (first["level"], first["logger"], first["message"]) == ("WARNING", "x", "one\x1b[2J line")
    assert first["trace_id"] == "ab" * 16 and "\x1b" not in done.stderr
    assert "trace_id" not in second and "ZeroDivisionError" in second["exception"]
