"""Text → unit vectors: the ``Encoder`` port and what implements it.

The default model runs on OpenVINO, converted once by a subprocess; other models run converted too where that gives the
same vectors, else on sentence-transformers; ``litellm:`` models answer over HTTP; ``hash:64`` needs no model.
"""

from nornweave.models.encoders.loading import load_encoder
from nornweave.models.encoders.port import Encoder, Progress, Vectors

__all__ = ["Encoder", "Progress", "Vectors", "load_encoder"]
