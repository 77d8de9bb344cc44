"""The bundled model, which tells which sentences are alike."""

import pytest

from nornweave.config import EmbeddingSettings
from nornweave.disagree.assertions.alike import SentenceEncoder
from nornweave.models.encoders import load_encoder


@pytest.fixture(scope="session")
def encode(tmp_path_factory: pytest.TempPathFactory) -> SentenceEncoder:
    return load_encoder(EmbeddingSettings().model, cache_dir=tmp_path_factory.mktemp("models")).encode
