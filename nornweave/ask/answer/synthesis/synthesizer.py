"""The port to the language model: ``Synthesizer``. What goes wrong there costs the answer its text, nothing else."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from nornweave.ask.answer.synthesis.citations import CheckedStream, check_citations
from nornweave.ask.answer.synthesis.prompt import build_prompt
from nornweave.ask.fuse.records import ConflictRecord, FusedItem, Synthesis
from nornweave.ask.search.records import CoverageGap
from nornweave.config.fusion import FusionSettings
from nornweave.core.errors import ConfigError
from nornweave.core.tracing import model_span
from nornweave.models.language_model import RUNTIME
from nornweave.models.language_model_errors import why_it_failed, why_not_asked
from nornweave.models.prompt import NO_MODEL, Prompt

log = logging.getLogger(__name__)

HEAD_START = 0.6
"""Share of the time that the first model has for itself; then its fallback is asked as well, and the first answer
counts."""
MOST_AT_ONCE = 4
"""Answers that one synthesizer writes at the same time."""
LEAST_S = 0.05
"""With less time than this nobody is asked."""
GRACE_S = 0.1
"""What the loop may take to hand over what it has at the deadline."""
OLLAMA = ("ollama", "ollama_chat")
OLLAMA_WINDOW = 8192
"""Ollama cuts a prompt without a word to a window that it is not asked to widen; each other width loads the model anew,
hence the steps of this size."""
CHARS_PER_TOKEN = 3
"""A low guess, for the window's sake."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a model said, and why it stopped; ``broken_off`` if it had more to say."""

    text: str
    finish_reason: str | None
    broken_off: str | None = None


_Said: TypeAlias = _Answer | str
"""An answer, or why there is none."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Who answered, if anybody did, and why the others did not."""

    model: str | None = None
    answer: _Answer | None = None
    failures: Mapping[str, str] = field(default_factory=dict)


class _Listener:
    """Listens to models that write piece by piece; only the first that says something is heard."""

    def __init__(self, allowed: Mapping[str, tuple[str, str]], on_text: Callable[[str], None]) -> None:
        self._stream = CheckedStream(allowed.values())
        self._on_text = on_text
        self.model: str | None = None

    async def follow(self, model: str, parts: AsyncIterator[Any]) -> _Said:
        """Pass on what a model writes; return the whole of it."""
        finish_reason = None
        async for part in parts:
            choice = part.choices[0] if part.choices else None
            finish_reason = getattr(choice, "finish_reason", None) or finish_reason
            piece = getattr(getattr(choice, "delta", None), "content", None)
            if not piece:
                continue
            if self.model not in {None, model}:
                return "another model was quicker"
            self.model = model
            self._tell(self._stream.add(piece))
        if not self._stream.written.strip():
            return f"answered with nothing (finish_reason {finish_reason!r})"
        # LiteLLM (1.106) makes up a "stop" where the server went away in mid answer.
        if getattr(parts, "received_finish_reason", finish_reason) is None:
            return self.broken_off("the connection ended before the answer did")
        self._tell(self._stream.rest())
        return _Answer(self._stream.written, finish_reason)

    def broken_off(self, reason: str) -> _Answer:
        """Return what was heard until the model stopped in mid answer."""
        self._tell(self._stream.rest())
        return _Answer(self._stream.written, None, reason)

    def _tell(self, text: str) -> None:
        if text:
            self._on_text(text)


class Synthesizer:
    """Writes answers with the model of the settings, and with its fallback; every method may be called by any thread.

    Keys and addresses come from the environment variables that LiteLLM reads (``OPENAI_API_KEY``, ``OPENAI_API_BASE``,
    ``OLLAMA_API_BASE``, …), at every call.
    """

    def __init__(self, settings: FusionSettings) -> None:
        """Store the settings; nothing is loaded before it is needed."""
        self._settings = settings
        self._slots = threading.BoundedSemaphore(MOST_AT_ONCE)

    def prepare(self) -> None:
        """Begin to load LiteLLM, which takes seconds, and return at once."""
        if self._models:
            RUNTIME.litellm()

    def synthesize(
        self,
        query: str,
        items: Sequence[FusedItem],
        conflicts: Sequence[ConflictRecord],
        coverage_gaps: Sequence[CoverageGap],
        *,
        timeout_ms: int | None = None,
    ) -> Synthesis:
        """Let a model answer the question out of the items.

        The model and its fallback have ``synthesis_timeout_ms`` together, from when LiteLLM is loaded on.

        Args:
            query: as it was asked.
            items: in their final order; the first ``synthesis_top_k`` are shown.
            conflicts: between them.
            coverage_gaps: what could not be searched.
            timeout_ms: when the result is needed, loading included; ``None`` if only the settings limit it.

        Returns:
            The text with its citations checked. Its ``reason`` says why there is none, or, beside a text, what to know
            of it: that it was cut off, or that it cites nothing of what it was given. Trouble with models never raises;
            it is logged without prompt, content and keys.
        """
        if not self._models:
            return _without(NO_MODEL)
        loading = RUNTIME.litellm()
        due = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        try:
            loading.exception(None if due is None else max(0.0, due - time.monotonic()))
        except TimeoutError:
            return _without(f"LiteLLM was still being loaded after {timeout_ms} ms")
        left_ms = None if due is None else max(0, round((due - time.monotonic()) * 1000))
        writing = self.start(query, items, conflicts, coverage_gaps, timeout_ms=left_ms)
        seconds = self._seconds(left_ms)
        try:
            return writing.result(seconds + GRACE_S)
        except (TimeoutError, CancelledError):  # the loop is stuck, and the slot taken until it is not; or it ends
            return _without(self._for_each_model(_late(seconds)))

    def start(
        self,
        query: str,
        items: Sequence[FusedItem],
        conflicts: Sequence[ConflictRecord],
        coverage_gaps: Sequence[CoverageGap],
        *,
        timeout_ms: int | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> Future[Synthesis]:
        """Let a model begin to answer the question out of the items, and return at once.

        Args:
            query: as it was asked.
            items: in their final order; the first ``synthesis_top_k`` are shown.
            conflicts: between them.
            coverage_gaps: what could not be searched.
            timeout_ms: once LiteLLM is loaded; ``None`` if only the settings limit it.
            on_text: takes the text piece by piece, in a thread that it must not block. Joined, the pieces are the text
                of the result, or its beginning. The model that says something first is the one that is heard.

        Returns:
            What ``synthesize`` returns; cancelling it breaks the model's call off. A text that was being passed on when
            its model failed or the time was over is kept, and ``reason`` says so.
        """
        return RUNTIME.start(self._written(query, items, conflicts, coverage_gaps, timeout_ms, on_text))

    async def _written(
        self,
        query: str,
        items: Sequence[FusedItem],
        conflicts: Sequence[ConflictRecord],
        coverage_gaps: Sequence[CoverageGap],
        timeout_ms: int | None,
        on_text: Callable[[str], None] | None,
    ) -> Synthesis:
        if not items:
            return Synthesis(text=None, reason="there are no results to write about")
        if not self._models:
            return _without(NO_MODEL)
        try:
            litellm = await asyncio.shield(asyncio.wrap_future(RUNTIME.litellm()))
        except ConfigError as error:  # it is not installed
            return _without(str(error))
        except Exception as error:
            return _without(f"LiteLLM cannot be loaded ({type(error).__name__}); install it again")
        due = asyncio.get_running_loop().time() + self._seconds(timeout_ms)
        prompt = build_prompt(query, items, conflicts, coverage_gaps, top_k=self._settings.synthesis_top_k)
        seconds = due - asyncio.get_running_loop().time()
        if seconds < LEAST_S:
            return _without(self._for_each_model("no time left to ask"))
        if not self._slots.acquire(blocking=False):
            return _without(self._for_each_model(f"busy with {MOST_AT_ONCE} other answers; ask again later"))
        try:
            listener = _Listener(prompt.allowed, on_text) if on_text else None
            return self._finished(await self._first_answer(litellm, prompt, seconds, listener), prompt)
        finally:
            self._slots.release()

    def _seconds(self, timeout_ms: int | None) -> float:
        limit = self._settings.synthesis_timeout_ms
        return min(limit, limit if timeout_ms is None else timeout_ms) / 1000

    @property
    def _models(self) -> tuple[str, ...]:
        named = (self._settings.synthesis_model, self._settings.synthesis_fallback)
        return tuple(dict.fromkeys(filter(None, named)))

    def _for_each_model(self, reason: str) -> str:
        return "; ".join(f"{model}: {reason}" for model in self._models)

    async def _first_answer(self, litellm: Any, prompt: Prompt, seconds: float, listener: _Listener | None) -> _Outcome:
        """Ask the models in turn, the next as soon as one fails or its head start is over; break off who is late."""
        clock = asyncio.get_running_loop().time
        due = clock() + seconds
        waiting = list(self._models)
        asked: dict[asyncio.Task[_Said], str] = {}
        failures: dict[str, str] = {}
        try:
            while waiting or asked:
                if waiting:
                    model = waiting.pop(0)
                    call = self._call(litellm, model, prompt, due - clock(), listener)
                    asked[asyncio.create_task(call)] = model
                pause = (due - clock()) * (HEAD_START if waiting else 1)
                done, _ = await asyncio.wait(asked, timeout=max(0.0, pause), return_when=asyncio.FIRST_COMPLETED)
                speaking = listener.model if listener else None
                if speaking:  # what a reader has seen the beginning of is not begun anew
                    waiting.clear()
                for task in [task for task in asked if task in done]:
                    model, said = asked.pop(task), _said(litellm, task, prompt)
                    if isinstance(said, _Answer):
                        return _Outcome(model, said, failures)
                    if listener and model == speaking:
                        return _Outcome(model, listener.broken_off(said), failures)
                    failures[model] = said
                if not done and clock() >= due:
                    break
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        late = _late(seconds)
        if listener and listener.model:
            return _Outcome(listener.model, listener.broken_off(late), failures)
        return _Outcome(failures=failures | dict.fromkeys(asked.values(), late))

    async def _call(
        self, litellm: Any, model: str, prompt: Prompt, seconds: float, listener: _Listener | None
    ) -> _Said:
        # In a thread, as some providers fetch their key from the network as soon as they are named.
        problem = await asyncio.to_thread(why_not_asked, litellm, model)
        if problem is not None:
            return problem
        with model_span(model):
            return await self._completion(litellm, model, prompt, seconds, listener)

    async def _completion(
        self, litellm: Any, model: str, prompt: Prompt, seconds: float, listener: _Listener | None
    ) -> _Said:
        answer = await litellm.acompletion(
            model=model,
            messages=[dict(message) for message in prompt.messages],
            temperature=self._settings.synthesis_temperature,
            max_tokens=self._settings.synthesis_max_tokens,
            timeout=seconds,
            max_retries=0,
            num_retries=0,
            drop_params=True,
            caching=False,
            stream=listener is not None,
            **self._ollama_options(litellm, model, prompt),
        )
        if listener is None:
            return _read(answer)
        async with aclosing(answer) as parts:  # a call that is cancelled ends now, not when somebody collects garbage
            return await listener.follow(model, parts)

    def _ollama_options(self, litellm: Any, model: str, prompt: Prompt) -> dict[str, Any]:
        provider = model.partition("/")[0]
        if provider not in OLLAMA:
            return {}
        # A model that its price list does not know makes LiteLLM (1.106) ask the server about it five times a call,
        # blocking, with a timeout of 6,000 s.
        free = {"litellm_provider": provider, "mode": "chat", "input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
        litellm.model_cost.setdefault(model, free)
        size = sum(len(message["content"]) for message in prompt.messages) // CHARS_PER_TOKEN
        needed = size + self._settings.synthesis_max_tokens
        return {"num_ctx": -(-needed // OLLAMA_WINDOW) * OLLAMA_WINDOW}

    def _finished(self, outcome: _Outcome, prompt: Prompt) -> Synthesis:
        failed = "; ".join(f"{model}: {reason}" for model, reason in outcome.failures.items())
        if outcome.answer is None:
            return _without(failed)
        if failed:
            log.warning("synthesis by %s, because of %s", outcome.model, failed)
        checked = check_citations(outcome.answer.text, prompt.allowed.values())
        limit = self._settings.synthesis_max_tokens
        cut = {"length": f"cut off at {limit} tokens", "content_filter": "cut off by the model's content policy"}
        notes = (
            cut.get(outcome.answer.finish_reason or ""),
            outcome.answer.broken_off and f"broken off: {outcome.answer.broken_off}",
            None if checked.cited else "cites none of the results",
        )
        return Synthesis(
            text=checked.text or None,
            reason="; ".join(filter(None, notes)) or None,
            model=outcome.model,
            cited=checked.cited,
            unknown_citations=checked.unknown,
        )


def _without(reason: str) -> Synthesis:
    log.warning("no synthesis: %s", reason)
    return Synthesis(text=None, reason=reason)


def _late(seconds: float) -> str:
    return f"no answer within {seconds * 1000:.0f} ms"


def _read(answer: Any) -> _Said:
    choices = getattr(answer, "choices", None)
    if not choices:
        return "answered without a choice"
    text = choices[0].message.content
    if not isinstance(text, str) or not text.strip():
        return f"answered with nothing (finish_reason {choices[0].finish_reason!r})"
    return _Answer(text, choices[0].finish_reason)


def _said(litellm: Any, task: asyncio.Task[_Said], prompt: Prompt) -> _Said:
    if task.cancelled():
        return "was broken off"
    error = task.exception()
    return task.result() if error is None else why_it_failed(litellm, error, prompt.messages[-1]["content"])
