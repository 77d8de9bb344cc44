"""The bundled model, which tells which sentences are alike."""

from pathlib import Path

import pytest

from nornweave.config import EmbeddingSettings
from nornweave.disagree.assertions.alike import SentenceEncoder
from nornweave.models.encoders import load_encoder


@pytest.fixture(scope="session")
def encode(model_cache: Path) -> SentenceEncoder:
    return load_encoder(EmbeddingSettings().model, cache_dir=model_cache).encode
