"""The engine on behalf of one viewer, a facade per subject. There is no way past the facades to what is hidden.

Every facade checks for itself what its viewer may see and do: a caller cannot forget it.
"""

from __future__ import annotations

from dataclasses import dataclass

from nornweave.ask.seen.agents import SeenAgents
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.seen.changes import SeenChanges
from nornweave.ask.seen.operators import SeenDocuments, SeenQuality
from nornweave.ask.seen.texts import SeenLedger, SeenTexts
from nornweave.core.access import Viewer


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEngine:
    """The engine limited to what a viewer may see and do; ``Engine.as_seen_by`` makes it.

    Attributes:
        agents: the agents of each domain, local and remote.
        answers: answers to questions, and users' judgments.
        documents: reports of syncs, and the inbox; for operators.
        quality: evaluations; for operators.
        ledger: conflicts in the whole corpus.
        changes: changes between two moments.
    """

    viewer: Viewer
    agents: SeenAgents
    answers: SeenAnswers
    texts: SeenTexts
    documents: SeenDocuments
    quality: SeenQuality
    ledger: SeenLedger
    changes: SeenChanges
