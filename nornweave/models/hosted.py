"""Hosted models through LiteLLM: an encoder, and a language model whose calls can be cancelled.

Calls run on an event loop in its own thread. Only there can a call be cancelled whose server sends headers and then
nothing, or one byte now and then. LiteLLM (1.106) ties its clients to the loop that made them, so a process has one
loop for its whole life.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib
import logging
import os
import re
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from nornweave.core.errors import EncoderError
from nornweave.core.installation import optional
from nornweave.models.encoders.port import Progress, Vectors, encodable, unit_rows
from nornweave.models.encoders.tokenizer import WORD_PIECES

if TYPE_CHECKING:
    from nornweave.core.text.spans import Tokenizer

log = logging.getLogger(__name__)

ATTEMPTS = 4
"""One call and three repetitions."""
FIRST_PAUSE = 0.5
"""Seconds before the first repetition; doubled before each further one."""
USUAL_LIMIT = 8_191
"""Tokens of an input where LiteLLM's table does not know the model."""
LONGEST_PAUSE = 30.0
"""Seconds that a service may ask for with ``Retry-After``."""
SECRETS = re.compile(r"(?i)\b(?:sk|pk|key)-[\w*-]{4,}|\bBearer\s+\S+")


def import_litellm() -> Any:
    """Import LiteLLM without its telemetry and without fetching its price list.

    LiteLLM's own retries are off as well, because the caller retries.

    Raises:
        ConfigError: LiteLLM is not installed.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with optional("llm", "hosted models"):
        litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    # A caller's max_retries=0 counts as "not given" for embeddings (1.106): our attempts would each become three.
    litellm.DEFAULT_MAX_RETRIES = 0
    return litellm


class LiteLLMEncoder:
    """A hosted embedding model. LiteLLM reads keys and addresses from environment variables.

    The model's tokenizer is not available, so a pattern estimates the tokens. It counts too many rather than too few.
    """

    def __init__(
        self,
        model: str,
        *,
        dimensions: int | None = None,
        batch_size: int = 32,
        timeout: float = 30.0,
        api_base: str | None = None,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        """Ask the model for one vector to find its dimensions.

        Args:
            model: LiteLLM's name of the model, without the ``litellm:`` prefix.
            dimensions: the length of vectors to ask for, if the model can shorten them; ``None`` for its usual length.
            timeout: seconds for one call.
            api_base: the address of the API; ``None`` lets LiteLLM choose it.

        Raises:
            EncoderError: the model cannot be reached or refuses.
        """
        self._litellm = import_litellm()
        self._model = model
        self._wanted = dimensions
        self._batch_size = batch_size
        self._timeout = timeout
        self._api_base = api_base
        self._first_pause = first_pause
        self.dimensions = 0
        self.dimensions = self._call(["probe"]).shape[1]
        self.version = f"litellm:{model}/{self.dimensions}"
        self.max_tokens = int(self._litellm.model_cost.get(model, {}).get("max_input_tokens") or USUAL_LIMIT)

    @property
    def tokenizer(self) -> Tokenizer:
        """An approximate tokenizer: a token is a piece of a word, at most six letters long."""
        return WORD_PIECES

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """Encode passages, ``batch_size`` in each call."""
        rows = [np.empty((0, self.dimensions), dtype=np.float32)]
        for start in range(0, len(texts), self._batch_size):
            rows.append(self._call(texts[start : start + self._batch_size]))
            if progress is not None:
                progress(min(start + self._batch_size, len(texts)))
        return np.concatenate(rows)

    def encode_query(self, text: str) -> Vectors:
        """Encode one query, the same way as a passage."""
        vector: Vectors = self._call([text])[0]
        return vector

    def _call(self, texts: Sequence[str]) -> Vectors:
        # APIs reject an empty input; a blank one has no meaning either.
        inputs = [encodable(text) if text.strip() else "." for text in texts]
        vectors = self._vectors(self._answer(inputs), len(inputs))
        if self.dimensions and vectors.shape[1] != self.dimensions:
            raise EncoderError(
                f"embedding model {self._model!r} returned {vectors.shape[1]} dimensions, before it were "
                f"{self.dimensions}; the service changed its model: name a fixed version"
            )
        return unit_rows(vectors, source=f"embedding model {self._model!r}")

    def _answer(self, inputs: list[str]) -> Any:
        errors = self._litellm.exceptions
        transient = (
            errors.RateLimitError,
            errors.Timeout,
            errors.ServiceUnavailableError,
            errors.InternalServerError,
            errors.BadGatewayError,
            errors.APIConnectionError,
        )
        for attempt in range(ATTEMPTS):
            try:
                return self._request(inputs)
            except transient as error:
                if attempt == ATTEMPTS - 1:
                    raise self._failure(error, f"{ATTEMPTS} times") from error
                pause = _asked_pause(error) or self._first_pause * 2**attempt
                log.warning("embedding model %s: %s; again in %g s", self._model, type(error).__name__, pause)
                time.sleep(pause)
            except (errors.APIError, self._litellm.openai.OpenAIError) as error:
                raise self._failure(error, "once") from error
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _request(self, inputs: list[str]) -> Any:
        options: dict[str, Any] = {} if self._wanted is None else {"dimensions": self._wanted}
        return self._litellm.embedding(
            model=self._model,
            input=inputs,
            timeout=self._timeout,
            api_base=self._api_base,
            encoding_format="float",
            drop_params=True,
            max_retries=0,
            caching=False,
            **options,
        )

    def _vectors(self, answer: Any, expected: int) -> Vectors:
        try:
            rows = sorted(answer.data, key=lambda row: int(row["index"]))
            positions = [int(row["index"]) for row in rows]
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EncoderError(f"embedding model {self._model!r} answered with no vectors ({error})") from error
        if positions != list(range(expected)) or vectors.ndim != 2 or not vectors.shape[1]:
            raise EncoderError(
                f"embedding model {self._model!r} returned {len(rows)} vectors of shape {vectors.shape} for {expected} "
                "texts; expected one each, all of one length"
            )
        return vectors

    def _failure(self, error: Exception, how_often: str) -> EncoderError:
        reason = SECRETS.sub("…", str(error).strip().splitlines()[0] if str(error).strip() else "no message")[:300]
        return EncoderError(
            f"embedding model {self._model!r} failed {how_often} ({type(error).__name__}: {reason}); "
            "check the model's name, the key and address in the environment, and the service"
        )


def _asked_pause(error: Exception) -> float:
    """Return the seconds in the answer's ``retry-after`` header; 0 if the header is missing or a date."""
    headers = getattr(error, "litellm_response_headers", None) or {}
    asked = str(headers.get("retry-after", ""))
    return min(float(asked), LONGEST_PAUSE) if re.fullmatch(r"\d{1,6}(\.\d{1,3})?", asked) else 0.0


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
