"""Call a language model through LiteLLM. Calls can be cancelled; errors show neither keys nor prompts.

Calls run on an event loop in its own thread. Only there can a call be cancelled whose server sends headers and then
nothing, or one byte now and then. LiteLLM (1.106) ties its clients to the loop that made them, so a process has one
loop for its whole life.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from nornweave.models.encoders.litellm import SECRETS, import_litellm

T = TypeVar("T")

END_S = 1.0
"""What calls may take to end when the process does."""
NO_MODEL = "no model is named; set fusion.synthesis_model in the configuration, or SYNTHESIS_MODEL"
"""Why no model was asked."""
REASON_CHARS = 200
MESSAGE_CHARS = 10_000
"""What is read of a server's message."""
QUOTE_CHARS = 16
"""A message that has this much in common with the prompt is not repeated."""

_SECRET_NAMES = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)
_LOGIN = re.compile(r"//[^/\s@]{1,200}@")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request to a language model.

    Attributes:
        messages: the messages, each with ``role`` and ``content``. The system message is first.
        allowed: a citation that the answer may use, without brackets → its domain and chunk.
        mark: the text of the fences around quoted data.
        urls: the addresses of the passages. The answer may link only to these.
    """

    messages: tuple[Mapping[str, str], ...]
    allowed: Mapping[str, tuple[str, str]]
    mark: str
    urls: frozenset[str] = frozenset()


class Runtime:
    """LiteLLM and its event loop, one per process, created at first use."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loading: Future[Any] | None = None

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine on the loop; return a future of its result."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._run, args=(self._loop,), name="synthesis", daemon=True).start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.run_forever()
        loop.close()
        self._ended.set()

    def end(self) -> None:
        """Cancel all calls, because a thread that wakes up during interpreter shutdown can hang the process."""
        self.start(_break_off())
        self._ended.wait(END_S)

    def litellm(self) -> Future[Any]:
        """Return a future of the LiteLLM module, because importing it takes seconds."""
        with self._lock:
            if self._loading is None or (self._loading.done() and self._loading.exception() is not None):
                self._loading = self.start(_load_litellm())
            return self._loading


async def _load_litellm() -> Any:
    litellm = import_litellm()
    # Its own transport keeps sessions that complain when the process ends before they are closed.
    litellm.disable_aiohttp_transport = True
    atexit.register(RUNTIME.end)
    return litellm


async def _break_off() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=END_S / 2)
    asyncio.get_running_loop().stop()


RUNTIME = Runtime()


def why_not_asked(litellm: Any, model: str) -> str | None:
    """Return why a model cannot be called (unknown provider, missing key); ``None`` if a call is worth trying.

    LiteLLM does not see every credential that is not a key (cloud roles, profiles, tokens). A call is tried if the
    provider can use such a credential.
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
    """Describe an error, with the server's message but without secrets."""
    if isinstance(error, litellm.exceptions.Timeout):
        return "did not answer in time"
    status = getattr(error, "status_code", None)
    kind = type(error).__name__ + (f" {status}" if isinstance(status, int) else "")
    message = _harmless(str(error), prompt)
    return f"{kind}: {message}" if message else kind


def _harmless(message: str, prompt: str) -> str:
    """Return the first line of a message without secrets. If it repeats the prompt, return a note instead."""
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
