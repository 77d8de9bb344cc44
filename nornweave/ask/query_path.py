"""The path of all viewers' questions, wired once; ``seen/answers.py`` asks it on behalf of one viewer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from nornweave.ask.agents.directory import RemoteAgents
from nornweave.ask.answer.synthesis.synthesizer import Synthesizer
from nornweave.ask.feedback import FeedbackBook
from nornweave.ask.fuse.records import Answer
from nornweave.ask.search.agent import Agent
from nornweave.ask.search.lanes import Lanes
from nornweave.carry.ledger_file import LedgerReader
from nornweave.config import Settings
from nornweave.config.workspace import FusionSettings
from nornweave.core.types import Domain
from nornweave.disagree.assertions.alike import SentenceEncoder
from nornweave.models.encoders.port import QueryMemo, Vectors, token_encoder

# Questions wait for domains and domains for retrieval sources: pools apart, or a full one would wait for itself. Each
# domain has threads of its own: one that hangs must not hold those that the others need.
DOMAIN_THREADS = 16
ENCODED_WITHIN_S = 2.0


@dataclass(slots=True, kw_only=True, eq=False)
class QueryPath:
    """The agents and the parts that fuse their answers.

    Attributes:
        pools: the threads of each domain's agent.
        remote: agents on other machines; ``None`` if none can register.
        feedback: shown answers and their judgments.
        notes: authors of lines, and dismissed conflicts.
        is_closing: set when no more questions are answered.
        on_answer: called with every answer, in the thread that made it.
    """

    settings: Settings
    agents: Mapping[Domain, Agent]
    pools: Mapping[Domain, ThreadPoolExecutor]
    lanes: Lanes
    remote: RemoteAgents | None
    feedback: FeedbackBook
    fusion: FusionSettings
    synthesizer: Synthesizer
    notes: LedgerReader
    is_closing: threading.Event = field(default_factory=threading.Event)
    on_answer: Callable[[Answer], None] | None = None

    def sentence_encoder(self) -> SentenceEncoder | None:
        """Return the function that encodes sentences for a comparison; ``None`` if no domain uses the bundled model.

        The threshold for sentences that say the same was fitted to the bundled model. Other models have other cosines.
        """
        loaded = (agent.encoder() for agent in self.agents.values() if agent.encoding.is_loaded)
        memo = next((each for each in loaded if each and token_encoder(each.encoder)), None)
        return partial(_encode_sentences, memo) if memo else None


def _encode_sentences(memo: QueryMemo, texts: Sequence[str]) -> Vectors:
    """Return the vectors of sentences, which are remembered as queries are.

    Raises:
        EncoderError: the model failed.
        TimeoutError: the model did not answer in time.
    """
    begun = [memo.begin(text) for text in texts]
    return np.stack([each.result(ENCODED_WITHIN_S).vector for each in begun])
