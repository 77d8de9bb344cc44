"""The encoder of an agent's questions: loaded once, and refused if it does not fit the index."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from nornweave.core.errors import EncoderError
from nornweave.models.encoders.port import EncodedQuery, same_space
from nornweave.models.encoders.queries import QueryMemo

log = logging.getLogger(__name__)


# While an encoder is being loaded, questions wait in threads of their own, or they would hold all that the other
# retrievers and domains run on.
THREADS = 8


class QueryEncoder:
    """Encodes questions. Every method may be called from any thread."""

    def __init__(self, load: Callable[[], QueryMemo], agent_id: str) -> None:
        """Store the function that loads the encoder. The agent's name is for the log."""
        self._load = load
        self._agent_id = agent_id
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix=f"dense-{agent_id}")
        self._lock = threading.Lock()
        self._memo: QueryMemo | None = None
        self.problem: str | None = None

    @property
    def is_loaded(self) -> bool:
        """Tell whether the encoder was loaded."""
        return self._memo is not None

    def load(self) -> QueryMemo | None:
        """Return the encoder; ``None`` if it cannot be loaded. Then ``problem`` says why."""
        with self._lock:
            if self._memo is None and self.problem is None:
                try:
                    self._memo = self._load()
                except EncoderError as error:
                    self.problem = str(error)
                    log.warning("%s answers without dense retrieval: %s", self._agent_id, error)
            return self._memo

    def encode(self, text: str, meta: Mapping[str, str]) -> Future[EncodedQuery]:
        """Start to encode a text for a generation with this metadata; return a future, which callers may share.

        The future's error is an ``EncoderError``: the encoder cannot be loaded, is not the generation's, or fails.
        """
        if self._memo and not self.mismatch(meta):
            return self._memo.begin(text)
        return self._threads.submit(self._encode, text, meta)

    def _encode(self, text: str, meta: Mapping[str, str]) -> EncodedQuery:
        memo = self.load()
        if memo is None:
            raise EncoderError(self.problem or "no encoder")
        if mismatch := self.mismatch(meta):
            raise EncoderError(mismatch)
        return memo.encode(text)

    def mismatch(self, meta: Mapping[str, str]) -> str | None:
        """Return why the encoder does not fit a generation; ``None`` if it fits."""
        if not meta or self._memo is None or same_space(meta.get("encoder"), self._memo.encoder.version):
            return None
        built_with, named = meta.get("encoder"), self._memo.encoder.version
        return f"the generation was built with encoder {built_with}, the configuration names {named}; sync to rebuild"
