"""The trace id of a request: the caller's or a new one, in its answer and in each of its log lines.

A caller names its trace in the header ``traceparent``: ``00-<trace, 32 digits>-<parent, 16>-<flags, 2>``, hexadecimal,
lower case (W3C Trace Context, https://www.w3.org/TR/trace-context/). Threads that work for a request run
in a copy of its context, so that their log lines have the id as well.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Mapping
from contextvars import ContextVar

from opentelemetry import trace
from starlette.types import ASGIApp, Receive, Scope, Send

from nornweave.core.text.terminal import configure_logging

HEADER = b"traceparent"
# Later versions may append fields; of version 00 there are four.
_TRACEPARENT = re.compile(rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")

_trace_id: ContextVar[str] = ContextVar("trace_id", default="")


def current_trace_id() -> str:
    """Return the trace id of the current request, 32 hexadecimal digits; empty outside of requests."""
    return _trace_id.get()


def callers_trace_id(scope: Scope) -> str | None:
    """Return the trace id in ``traceparent``; ``None`` unless there is exactly one header and it is valid."""
    values = [value.strip() for name, value in scope["headers"] if name == HEADER]
    match = _TRACEPARENT.fullmatch(values[0]) if len(values) == 1 else None
    if match is None or (match[1] == b"00" and match[3]):
        return None
    return match[2].decode("ascii")


def _span_trace_id(scope: Scope) -> str | None:
    """Return the trace id of FastAPI's span; ``None`` if none is recorded. The query is removed from the span."""
    span = trace.get_current_span()
    if not span.is_recording():
        return None
    if scope.get("query_string"):
        span.set_attribute("url.query", "REDACTED")  # of a page's address it is what was asked
    return f"{span.get_span_context().trace_id:032x}"


def traceparent() -> str:
    """Return the value of the header ``traceparent``, which passes the current trace on to another process."""
    return f"00-{current_trace_id()}-{secrets.token_hex(8)}-01"


class Tracing:
    """Gives each request its trace id, for as long as it is being answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token = _trace_id.set(_span_trace_id(scope) or callers_trace_id(scope) or secrets.token_hex(16))
        try:
            await self._app(scope, receive, send)
        finally:
            _trace_id.reset(token)


class _TraceSuffix(logging.Filter):
    """Gives each log record the text ``trace_id=…`` for the end of its line; an empty text outside of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        trace_id = current_trace_id()
        record.trace_id, record.trace = trace_id, f" trace_id={trace_id}" if trace_id else ""
        return True


def log_trace_ids(environment: Mapping[str, str]) -> None:
    """Send log records from ``LOG_LEVEL`` on to stderr, as ``LEVEL message trace_id=…``, and nowhere else."""
    configure_logging(environment, line="%(levelname)s %(message)s%(trace)s", added=_TraceSuffix())
