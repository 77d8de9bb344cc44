"""OpenTelemetry spans: what a request spends its time on, for whoever configures an exporter.

Only the API is used. Without an SDK a span costs some microseconds and is kept by nobody. Names and attributes follow
the semantic conventions of generative AI where these have any
(https://opentelemetry.io/docs/specs/semconv/gen-ai/). What is asked is left out unless
``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` is ``true``, the variable that other instrumentations read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from opentelemetry import trace
from opentelemetry.util.types import AttributeValue

T = TypeVar("T")

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

_TRACER = trace.get_tracer("nornweave")


def span(name: str, **attributes: AttributeValue) -> AbstractContextManager[trace.Span]:
    """Open a span below the current one; of attribute names ``__`` stands for a dot."""
    return _TRACER.start_as_current_span(
        name, attributes={key.replace("__", "."): value for key, value in attributes.items()}
    )


def retrieval_span(domain: str, query: str, top_k: int) -> AbstractContextManager[trace.Span]:
    """Open the span of one domain's answer."""
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


def in_span(name: str, work: Callable[[], T]) -> Callable[[], T]:
    """Return work that has a span of its own."""

    def spanned() -> T:
        with span(name):
            return work()

    return spanned


def captures_content() -> bool:
    """Tell whether spans may hold what is asked."""
    return os.environ.get(CAPTURE, "").strip().lower() in {"true", "1"}
