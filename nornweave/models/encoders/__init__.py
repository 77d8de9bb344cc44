"""Text → unit vectors: the ``Encoder`` port and what implements it.

BERT with mean pooling, the default model among them, runs on OpenVINO, converted once by a subprocess; other models run
on sentence-transformers; ``litellm:`` models answer over HTTP; ``hash:64`` needs no model.
"""

from nornweave.models.encoders.loading import load_encoder
from nornweave.models.encoders.port import Encoder, Progress, Vectors

__all__ = ["Encoder", "Progress", "Vectors", "load_encoder"]
