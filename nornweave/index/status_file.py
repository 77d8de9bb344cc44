"""Read ``status.json`` of a domain: what its last syncs reported, for whoever must not know of syncing."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

NAME = "status.json"


def read_status(folder: Path) -> dict[str, Any]:
    """Return the domain's status, empty when it never ran."""
    try:
        loaded = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        logger.warning("%s: cannot be read, starting it afresh: %s", folder / NAME, error)
        return {}
    return loaded if isinstance(loaded, dict) else {}
