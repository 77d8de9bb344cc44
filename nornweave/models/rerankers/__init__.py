"""Query and text → relevance, read together: the ``Reranker`` port and what implements it.

A sentence-transformers ``CrossEncoder`` by name or folder, which runs with torch. No weights come with the package:
without any, ``RerankerSlot`` says so, and the combined order stands.
"""

from nornweave.models.rerankers.loading import RerankerSlot, SlotState, load_reranker
from nornweave.models.rerankers.port import Reranker, Scores

__all__ = ["Reranker", "RerankerSlot", "Scores", "SlotState", "load_reranker"]
