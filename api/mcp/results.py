"""The size and the form of what a tool returns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from api.mcp.arguments import MAX_RESULT_TOKENS
from nornweave.core.text.token_bound import bound_tokens

# Twice that, at four characters a token, is below 10,000: some clients pass on both the structure and the text.
MAX_RESULT_CHARACTERS = 19_000


def written(document: Mapping[str, Any]) -> str:
    """Return a result as the JSON that a model reads."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def is_within(document: Mapping[str, Any], max_tokens: int = MAX_RESULT_TOKENS) -> bool:
    """Tell whether a result is small enough."""
    text = written(document)
    return len(text) <= MAX_RESULT_CHARACTERS and bound_tokens(text) <= max_tokens
