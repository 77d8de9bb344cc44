"""The engine on behalf of one viewer, a facade per subject. There is no way past the facades to what is hidden.

Every facade checks for itself what its viewer may see and do: a caller cannot forget it.
"""

from __future__ import annotations

from dataclasses import dataclass

from nornweave.ask.seen.agents import SeenAgents
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.seen.changes import SeenChanges
from nornweave.ask.seen.documents import SeenDocuments
from nornweave.ask.seen.ledger import SeenLedger
from nornweave.ask.seen.quality import SeenQuality
from nornweave.ask.seen.texts import SeenTexts
from nornweave.core.access import Viewer


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEngine:
    """What a viewer may ask and do; ``Engine.as_seen_by`` makes it.

    Attributes:
        agents: of each domain, here and on other machines.
        answers: to questions, and what users say of them.
        documents: what syncs reported of them, and the inbox; for operators.
        quality: what was measured; for operators.
        ledger: what disagrees in the whole corpus.
        changes: what changed between two moments.
    """

    viewer: Viewer
    agents: SeenAgents
    answers: SeenAnswers
    texts: SeenTexts
    documents: SeenDocuments
    quality: SeenQuality
    ledger: SeenLedger
    changes: SeenChanges
