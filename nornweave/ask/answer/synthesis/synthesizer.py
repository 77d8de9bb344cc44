"""The port to the language model: ``Synthesizer``. If it fails, an answer only lacks its text."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Any

from nornweave.ask.answer.synthesis.model_call import Listener, ModelAnswer, Said, call
from nornweave.ask.answer.synthesis.prompt import PromptContext, build_prompt
from nornweave.ask.fuse.records import Synthesis
from nornweave.config.workspace import FusionSettings
from nornweave.core.errors import ConfigError
from nornweave.core.text.legible import counted
from nornweave.models.language_model import NO_MODEL, RUNTIME, Prompt, why_it_failed

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


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The model that answered, its answer, and the failures of the others."""

    model: str | None = None
    answer: ModelAnswer | None = None
    failures: Mapping[str, str] = field(default_factory=dict)


class Synthesizer:
    """Writes answers with the configured model and its fallback. Every method may be called from any thread.

    Keys and addresses come from the environment variables that LiteLLM reads (``OPENAI_API_KEY``, ``OPENAI_API_BASE``,
    ``OLLAMA_API_BASE``, …), at every call.
    """

    def __init__(self, settings: FusionSettings) -> None:
        self._settings = settings
        self._slots = threading.BoundedSemaphore(MOST_AT_ONCE)

    def prepare(self) -> None:
        """Start to load LiteLLM, which takes seconds, and return at once."""
        if self._models:
            RUNTIME.litellm()

    def synthesize(self, context: PromptContext, *, timeout_ms: int | None = None) -> Synthesis:
        """Let a model answer the question from the items.

        The model and its fallback have ``synthesis_timeout_ms`` together. The time starts when LiteLLM is loaded.

        Returns:
            The text after ``check_written``. Its ``reason`` says why there is no text, or a remark on the text:
            that it was cut off, that it cites no passage, or that links are left out.
            Trouble with models never raises; it is logged without prompt, content and keys.
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
        writing = self.start(context, timeout_ms=left_ms)
        seconds = self._seconds(left_ms)
        try:
            return writing.result(seconds + GRACE_S)
        except (TimeoutError, CancelledError):  # the loop is stuck, and the slot taken until it is not; or it ends
            return _without(self._for_each_model(_late(seconds)))

    def start(
        self, context: PromptContext, *, timeout_ms: int | None = None, on_text: Callable[[str], None] | None = None
    ) -> Future[Synthesis]:
        """Let a model start to answer the question from the items, and return at once.

        Args:
            context: the material; the model sees the first ``synthesis_top_k`` items.
            timeout_ms: counted after LiteLLM is loaded; ``None`` if only the settings limit the time.
            on_text: gets the text piece by piece, in a thread that it must not block. Joined, the pieces are the text
                of the result, or its beginning. Only the first model that writes anything is passed on.

        Returns:
            A future of what ``synthesize`` returns; cancelling it ends the model's call. A text that was being sent
            when its model failed or the time ended is kept, and ``reason`` says so.
        """
        return RUNTIME.start(self._written(context, timeout_ms, on_text))

    async def _written(
        self, context: PromptContext, timeout_ms: int | None, on_text: Callable[[str], None] | None
    ) -> Synthesis:
        if not context.items:
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
        prompt = build_prompt(context, top_k=self._settings.synthesis_top_k)
        seconds = due - asyncio.get_running_loop().time()
        if seconds < LEAST_S:
            return _without(self._for_each_model("no time left to ask"))
        if not self._slots.acquire(blocking=False):
            return _without(self._for_each_model(f"busy with {MOST_AT_ONCE} other answers; ask again later"))
        try:
            listener = Listener(prompt, on_text) if on_text else None
            return self._finish(await self._first_answer(litellm, prompt, seconds, listener))
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

    async def _first_answer(self, litellm: Any, prompt: Prompt, seconds: float, listener: Listener | None) -> _Outcome:
        """Ask the models in turn; return the first answer.

        The next model starts when one fails or its head start is over. Models that are too late are cancelled.
        """
        clock = asyncio.get_running_loop().time
        due = clock() + seconds
        waiting = list(self._models)
        asked: dict[asyncio.Task[Said], str] = {}
        failures: dict[str, str] = {}
        try:
            while waiting or asked:
                if waiting:
                    model = waiting.pop(0)
                    asking = call(litellm, model, prompt, self._settings, due - clock(), listener)
                    asked[asyncio.create_task(asking)] = model
                pause = (due - clock()) * (HEAD_START if waiting else 1)
                done, _ = await asyncio.wait(asked, timeout=max(0.0, pause), return_when=asyncio.FIRST_COMPLETED)
                speaking = listener.model if listener else None
                if speaking:  # what a reader has seen the beginning of is not begun anew
                    waiting.clear()
                for task in [task for task in asked if task in done]:
                    model, said = asked.pop(task), _read_outcome(litellm, task, prompt)
                    if isinstance(said, ModelAnswer):
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

    def _finish(self, outcome: _Outcome) -> Synthesis:
        failed = "; ".join(f"{model}: {reason}" for model, reason in outcome.failures.items())
        if outcome.answer is None:
            return _without(failed)
        if failed:
            log.warning("synthesis by %s, because of %s", outcome.model, failed)
        checked = outcome.answer.shown
        limit = self._settings.synthesis_max_tokens
        cut = {"length": f"cut off at {limit} tokens", "content_filter": "cut off by the model's content policy"}
        notes = (
            cut.get(outcome.answer.finish_reason or ""),
            outcome.answer.broken_off and f"broken off: {outcome.answer.broken_off}",
            None if checked.cited else "cites none of the results",
            f"{counted(checked.links_left_out, 'link')} left out" if checked.links_left_out else None,
        )
        return Synthesis(
            text=checked.text or None,
            reason="; ".join(filter(None, notes)) or None,
            model=outcome.model,
            cited=checked.cited,
            unknown_citations=checked.unknown,
            links_left_out=checked.links_left_out,
        )


def _without(reason: str) -> Synthesis:
    log.warning("no synthesis: %s", reason)
    return Synthesis(text=None, reason=reason)


def _late(seconds: float) -> str:
    return f"no answer within {seconds * 1000:.0f} ms"


def _read_outcome(litellm: Any, task: asyncio.Task[Said], prompt: Prompt) -> Said:
    if task.cancelled():
        return "was broken off"
    error = task.exception()
    return task.result() if error is None else why_it_failed(litellm, error, prompt.messages[-1]["content"])
