"""Errors as a tool says them: what was wrong and what to do about it, in a sentence that a model can act on."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence

from pydantic import ValidationError

from api.errors import MAX_FIELDS, RETRY_STORE_S, ProblemError, field_problem
from nornweave.core.errors import (
    ConfigError,
    EncoderError,
    GenerationNotKeptError,
    NoGenerationError,
    NornWeaveError,
    NotPermittedError,
    QueryError,
    StoreError,
)

logger = logging.getLogger(__name__)


def failure(error: Exception, allowed: Sequence[str]) -> str:
    """Return what to say of an error.

    Args:
        error: that ended the call.
        allowed: the arguments of the tool.
    """
    match error:
        case ValidationError():
            return _wrong_arguments(error, allowed)
        case QueryError():
            return (
                f"Wrong arguments: {error.field}: {error.problem}. Nothing was searched; correct this and call again."
            )
        case ProblemError():
            retry = (error.headers or {}).get("Retry-After")
            return f"{error.detail}. Call again in {retry} s." if retry else f"{error.detail}."
        case NotPermittedError() | GenerationNotKeptError():
            return f"{error}."
        case NoGenerationError():
            return f"{error}. Nothing can be found before that; `status` shows which domains are published."
        case StoreError() | EncoderError():
            logger.error("a tool failed: %s", error)
            return f"{error}. Call again in {RETRY_STORE_S} s; if it stays like this, `status` tells more."
        case ConfigError() | NornWeaveError():
            logger.error("a tool failed: %s", error)
            return f"{error}. Whoever runs NornWeave has to mend this."
        case _:
            occurrence = uuid.uuid4()
            logger.error("error %s in a tool", occurrence, exc_info=error)
            return f"An unexpected error; the log of the server tells more under {occurrence}. Another query may work."


def _wrong_arguments(error: ValidationError, allowed: Sequence[str]) -> str:
    failures = error.errors(include_url=False, include_context=False)
    problems = [field_problem({**failure, "loc": ("arguments", *failure["loc"])}) for failure in failures[:MAX_FIELDS]]
    said = "; ".join(f"{problem['field']}: {problem['detail']}" for problem in problems)
    more = f"; and {len(failures) - MAX_FIELDS} more" if len(failures) > MAX_FIELDS else ""
    return f"Wrong arguments: {said}{more}. Allowed are: {', '.join(allowed) or 'none'}. Correct this and call again."
