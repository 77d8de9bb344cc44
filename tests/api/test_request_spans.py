"""OpenTelemetry spans of a question: one tree from the route to each retrieval source, without what was asked."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from api_support import client_of
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from nornweave.config import Settings
from nornweave.core.tracing import CAPTURE

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ASKED = "post_entry of the ledger"


@pytest.fixture(scope="module")
def exporter() -> Iterator[InMemorySpanExporter]:
    """Record spans; a process can be given a provider only once, so it stays, and records nothing afterwards."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    yield exporter
    provider.shutdown()


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    exporter.clear()
    return exporter


def ask(settings: Settings, path: str = "/query", **request: Any) -> httpx.Response:
    async def main() -> httpx.Response:
        async with client_of(settings, None) as client:
            return await client.request("POST" if request else "GET", path, **request)

    return asyncio.run(main())


def by_name(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


def path_to_root(span: ReadableSpan, spans: InMemorySpanExporter) -> list[str]:
    """Return the names from a span up to the first."""
    by_id = {one.context.span_id: one for one in spans.get_finished_spans()}
    names = [span.name]
    while span.parent and span.parent.span_id in by_id:
        span = by_id[span.parent.span_id]
        names.append(span.name)
    return names


def test_a_question_is_one_tree_in_the_trace_of_its_caller(published: Settings, spans: InMemorySpanExporter) -> None:
    body = {"query": ASKED, "domains": ["code"]}
    answer = ask(published, json=body, headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
    assert answer.json()["trace_id"] == TRACE
    # Domains that load ask a question of their own, in other traces: their spans have the same names.
    finished = spans.get_finished_spans()
    found = {span.name: span for span in finished if f"{span.context.trace_id:032x}" == TRACE}
    assert path_to_root(found["search dense"], spans) == [
        "search dense", "retrieval code", "nornweave.recall", "fastapi.endpoint", "POST /query",
    ]  # fmt: skip
    assert path_to_root(found["nornweave.deduplicate"], spans)[-1] == "POST /query"
    assert {f"search {name}" for name in ("dense", "sparse", "fulltext", "structured")} <= set(found)
    assert {"POST /query", "retrieval code", "search sparse", "nornweave.rank"} <= set(found)
    retrieval = found["retrieval code"].attributes or {}
    assert retrieval["gen_ai.operation.name"] == "retrieval" and retrieval["gen_ai.data_source.id"] == "code"


def test_what_was_asked_is_left_out_unless_it_is_wanted(
    published: Settings, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(published, json={"query": ASKED})
    ask(published, "/conflicts?since=2026-01-20")
    assert not [span for span in spans.get_finished_spans() if "ledger" in str(dict(span.attributes or {}))]
    assert (by_name(spans)["GET /conflicts"].attributes or {})["url.query"] == "REDACTED"
    spans.clear()
    monkeypatch.setenv(CAPTURE, "true")
    ask(published, json={"query": ASKED})
    assert (by_name(spans)["retrieval code"].attributes or {})["gen_ai.retrieval.query.text"] == ASKED


def test_without_a_caller_the_trace_is_that_of_the_span(published: Settings, spans: InMemorySpanExporter) -> None:
    answer = ask(published, json={"query": ASKED})
    assert answer.json()["trace_id"] == f"{by_name(spans)['POST /query'].context.trace_id:032x}"
