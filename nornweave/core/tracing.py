"""OpenTelemetry spans: the time that a request spends, if an exporter is configured.

Only the API is used; without an SDK no span is opened. Names and attributes follow the semantic conventions of
generative AI where these have any (https://opentelemetry.io/docs/specs/semconv/gen-ai/). What is asked is left out
unless ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` is ``true``, as other instrumentations have it.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext

from opentelemetry import trace
from opentelemetry.util.types import AttributeValue

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

_TRACER = trace.get_tracer("nornweave")
_NO_SPAN = nullcontext(trace.INVALID_SPAN)
_KEEPS_NOTHING = (trace.ProxyTracerProvider, trace.NoOpTracerProvider)


def span(name: str, **attributes: AttributeValue) -> AbstractContextManager[trace.Span]:
    """Open a span below the current one. ``__`` in attribute names becomes a dot."""
    # A span that nobody keeps takes 3 microseconds, and a question has thirty.
    if isinstance(trace.get_tracer_provider(), _KEEPS_NOTHING):
        return _NO_SPAN
    return _TRACER.start_as_current_span(
        name, attributes={key.replace("__", "."): value for key, value in attributes.items()}
    )


def retrieval_span(domain: str, query: str, top_k: int) -> AbstractContextManager[trace.Span]:
    """Open the span of one domain's retrieval."""
    asked = {"gen_ai__retrieval__query__text": query} if captures_content() else {}
    return span(
        f"retrieval {domain}",
        gen_ai__operation__name="retrieval",
        gen_ai__data_source__id=domain,
        gen_ai__request__top_k=top_k,
        **asked,
    )


def model_span(model: str) -> AbstractContextManager[trace.Span]:
    """Open the span of a language model's answer."""
    return span(f"chat {model}", gen_ai__operation__name="chat", gen_ai__request__model=model)


def captures_content() -> bool:
    """Tell whether spans may contain the question."""
    return os.environ.get(CAPTURE, "").strip().lower() in {"true", "1"}
