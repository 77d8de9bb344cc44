"""The encoders and rerankers of questions: each is loaded once, whichever domains use it."""

from __future__ import annotations

import threading

from nornweave.config import DomainSettings, EmbeddingSettings, RerankingSettings, Settings
from nornweave.index.wiring import encoder_of
from nornweave.models.encoders.openvino import OpenVinoEncoder
from nornweave.models.encoders.queries import EncoderLoad, QueryMemo
from nornweave.models.rerankers import RerankerSlot


class QueryModels:
    """Models of one process, shared by its domains."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._rerankers: dict[tuple[str | None, str], RerankerSlot] = {}
        self._memos: dict[EmbeddingSettings, QueryMemo] = {}
        self._loading = threading.Lock()

    def encoder(self, configured: DomainSettings) -> QueryMemo:
        """Return the encoder of a domain with what it has encoded.

        Raises:
            EncoderError: it cannot be loaded.
        """
        with self._loading:
            if configured.embedding not in self._memos:
                encoder = encoder_of(self._settings, configured)
                self._memos[configured.embedding] = QueryMemo(encoder, together=isinstance(encoder, OpenVinoEncoder))
            return self._memos[configured.embedding]

    def reranker(self, configured: RerankingSettings) -> RerankerSlot:
        """Return the slot of a cross-encoder."""
        model, device = configured.model, configured.device
        if (model, device) not in self._rerankers:
            self._rerankers[model, device] = RerankerSlot(model, device=device)
        return self._rerankers[model, device]

    def encoder_load(self) -> EncoderLoad:
        """Return what the encoders have done and have to do, together."""
        loads = [memo.load for memo in list(self._memos.values())]
        return EncoderLoad(*(sum(values) for values in zip(*loads, strict=True))) if loads else EncoderLoad(0, 0, 0)

    def close(self) -> None:
        """Close the rerankers."""
        for reranker in self._rerankers.values():
            reranker.close()
