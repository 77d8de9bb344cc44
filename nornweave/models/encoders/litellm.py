"""An encoder for hosted embedding models, through LiteLLM."""

from __future__ import annotations

import importlib
import logging
import os
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
