"""The conflict ledger: made anew after every publication, over all domains that are published."""

# No ``from __future__ import annotations`` here: Dagster reads the annotations of asset bodies as objects.

import dagster as dg

from nornweave.config import Settings
from nornweave.disagree.facts import extract
from nornweave.index.wiring import pull
from nornweave.ingest.ledger import refresh_ledger
from nornweave.share.publishing import refresh_workspace
from orchestration import metadata
from orchestration.assets import OWNERS, Result
from orchestration.assets.domain import asset_key
from orchestration.resources import translated

GROUP = "ledger"
LEDGER_KEY = dg.AssetKey([GROUP, "conflicts"])


def ledger_asset(settings: Settings) -> dg.AssetsDefinition:
    """Return the asset; it comes after the publications of the domains that are served."""

    @dg.asset(
        key=LEDGER_KEY,
        deps=[asset_key(domain, "generation") for domain in settings.served_domains],
        group_name=GROUP,
        description=_DESCRIPTION,
        kinds={"duckdb"},
        owners=OWNERS,
        code_version=extract.VERSION,
    )
    def conflicts() -> Result:
        with translated():
            pull(settings)
            ledger = refresh_ledger(settings)
            refresh_workspace(settings)
            return dg.MaterializeResult(metadata=metadata.ledger_metadata(ledger))

    return conflicts


_DESCRIPTION = (
    "What the published generations of two domains disagree about: facts with both places, the suggested authority, "
    "when it was first seen, and what is settled since the last time. Read it with `nornweave conflicts`."
)
