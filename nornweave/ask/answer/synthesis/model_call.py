"""One call of a language model by LiteLLM: whole, or piece by piece with its citations checked on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeAlias

from nornweave.ask.answer.synthesis.written import CheckedStream, CheckedText, check_written
from nornweave.config.workspace import FusionSettings
from nornweave.core.tracing import model_span
from nornweave.models.language_model import Prompt, why_not_asked

OLLAMA = ("ollama", "ollama_chat")
OLLAMA_WINDOW = 8192
"""Ollama cuts a prompt without a word to a window that it is not asked to widen; each other width loads the model anew,
hence the steps of this size."""
CHARS_PER_TOKEN = 3
"""A low guess, for the window's sake."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The shown text of a model, and why it stopped. ``broken_off`` means that the model had more to say."""

    shown: CheckedText
    finish_reason: str | None
    broken_off: str | None = None


Said: TypeAlias = ModelAnswer | str
"""An answer, or why there is none."""


class Listener:
    """Passes on the text of models that write piece by piece, but only of the first one that writes anything."""

    def __init__(self, prompt: Prompt, on_text: Callable[[str], None]) -> None:
        self._stream = CheckedStream(prompt)
        self._on_text = on_text
        self.model: str | None = None

    async def follow(self, model: str, parts: AsyncIterator[Any]) -> Said:
        """Pass on a model's text; return all of it."""
        finish_reason, has_said = None, False
        async for part in parts:
            choice = part.choices[0] if part.choices else None
            finish_reason = getattr(choice, "finish_reason", None) or finish_reason
            piece = getattr(getattr(choice, "delta", None), "content", None)
            if not piece:
                continue
            if self.model not in {None, model}:
                return "another model was quicker"
            self.model = model
            has_said = has_said or not piece.isspace()
            self._tell(self._stream.add(piece))
        if not has_said:
            return f"answered with nothing (finish_reason {finish_reason!r})"
        # LiteLLM (1.106) makes up a "stop" where the server went away in mid answer.
        if getattr(parts, "received_finish_reason", finish_reason) is None:
            return self.broken_off("the connection ended before the answer did")
        return self._finish_answer(finish_reason)

    def broken_off(self, reason: str) -> ModelAnswer:
        """Return the text that arrived before the model stopped in the middle, with the reason."""
        return self._finish_answer(None, reason)

    def _finish_answer(self, finish_reason: str | None, broken_off: str | None = None) -> ModelAnswer:
        self._tell(self._stream.rest())
        return ModelAnswer(self._stream.checked(), finish_reason, broken_off)

    def _tell(self, text: str) -> None:
        if text:
            self._on_text(text)


async def call(
    litellm: Any, model: str, prompt: Prompt, settings: FusionSettings, seconds: float, listener: Listener | None
) -> Said:
    """Return a model's answer, or a sentence that says why there is none. A ``listener`` gets the text in pieces."""
    # In a thread, as some providers fetch their key from the network as soon as they are named.
    problem = await asyncio.to_thread(why_not_asked, litellm, model)
    if problem is not None:
        return problem
    with model_span(model):
        answer = await litellm.acompletion(
            model=model,
            messages=[dict(message) for message in prompt.messages],
            temperature=settings.synthesis_temperature,
            max_tokens=settings.synthesis_max_tokens,
            timeout=seconds,
            max_retries=0,
            num_retries=0,
            drop_params=True,
            caching=False,
            stream=listener is not None,
            **_ollama_options(litellm, model, prompt, settings),
        )
        if listener is None:
            return _read(answer, prompt)
        async with aclosing(answer) as parts:  # a call that is cancelled ends now, not when somebody collects garbage
            return await listener.follow(model, parts)


def _ollama_options(litellm: Any, model: str, prompt: Prompt, settings: FusionSettings) -> dict[str, Any]:
    provider = model.partition("/")[0]
    if provider not in OLLAMA:
        return {}
    # A model that its price list does not know makes LiteLLM (1.106) ask the server about it five times a call,
    # blocking, with a timeout of 6,000 s.
    free = {"litellm_provider": provider, "mode": "chat", "input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
    litellm.model_cost.setdefault(model, free)
    size = sum(len(message["content"]) for message in prompt.messages) // CHARS_PER_TOKEN
    needed = size + settings.synthesis_max_tokens
    return {"num_ctx": -(-needed // OLLAMA_WINDOW) * OLLAMA_WINDOW}


def _read(answer: Any, prompt: Prompt) -> Said:
    choices = getattr(answer, "choices", None)
    if not choices:
        return "answered without a choice"
    text = choices[0].message.content
    if not isinstance(text, str) or not text.strip():
        return f"answered with nothing (finish_reason {choices[0].finish_reason!r})"
    return ModelAnswer(check_written(text, prompt), choices[0].finish_reason)
