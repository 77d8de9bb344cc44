"""Describe errors of language models without revealing keys or prompts."""

from __future__ import annotations

import os
import re
from typing import Any

from nornweave.models.encoders.litellm import SECRETS

REASON_CHARS = 200
MESSAGE_CHARS = 10_000
"""What is read of a server's message."""
QUOTE_CHARS = 16
"""A message that has this much in common with the prompt is not repeated."""

_SECRET_NAMES = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)
_LOGIN = re.compile(r"//[^/\s@]{1,200}@")


def why_not_asked(litellm: Any, model: str) -> str | None:
    """Return why a model cannot be called: an unknown provider or a missing key.

    Of credentials other than a key (roles, profiles, tokens of a cloud) LiteLLM sees only some; those are tried.
    """
    try:
        _, provider, key, _ = litellm.get_llm_provider(model)
    except litellm.openai.OpenAIError:
        return "LiteLLM knows no such provider; write the model as provider/model"
    own = f"{provider}_API_KEY".upper()
    blank = [own] if os.environ.get(own, own).strip() == "" else []
    names = litellm.validate_environment(model)["missing_keys"] or blank
    if key or not names or not all(name.endswith(("_API_KEY", "_TOKEN")) for name in names):
        return None
    return f"no key ({' or '.join(names)} is not set)"


def why_it_failed(litellm: Any, error: BaseException, prompt: str) -> str:
    """Describe an error, with the server's message stripped of secrets."""
    if isinstance(error, litellm.exceptions.Timeout):
        return "did not answer in time"
    status = getattr(error, "status_code", None)
    kind = type(error).__name__ + (f" {status}" if isinstance(status, int) else "")
    message = _harmless(str(error), prompt)
    return f"{kind}: {message}" if message else kind


def _harmless(message: str, prompt: str) -> str:
    """Return the first line of a message without keys; nothing of one that repeats the prompt."""
    values = {value for name, value in os.environ.items() if _SECRET_NAMES.search(name) and len(value) >= 6}
    message = message[:MESSAGE_CHARS]
    for secret in sorted(values, key=len, reverse=True):
        message = message.replace(secret, "…")
    line = next(iter(message.strip().splitlines()), "")
    line = line.rpartition("Exception - ")[2].removeprefix("litellm.APIConnectionError: ")
    line = _LOGIN.sub("//…@", SECRETS.sub("…", line))
    line = " ".join("…" if "**" in word else word for word in line.split())[:REASON_CHARS]
    asked = " ".join(prompt.split())
    quotes = any(line[start : start + QUOTE_CHARS] in asked for start in range(len(line) - QUOTE_CHARS + 1))
    return "its message repeats the prompt" if quotes else line
