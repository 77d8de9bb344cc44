"""Loading third-party runtimes without what they do behind one's back."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any


def import_openvino() -> Any:
    """Import OpenVINO without its telemetry.

    ``import openvino`` (2026.4) sends an event to Google Analytics, from a forked process, unless a consent file in the
    home folder forbids it. It does without its telemetry package where that is missing, and ``None`` in ``sys.modules``
    is how Python spells missing.
    """
    if "openvino" not in sys.modules:
        sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    return importlib.import_module("openvino")


def import_litellm() -> Any:
    """Import LiteLLM without its telemetry and without fetching its price list.

    Its own retries are off, too: whoever calls it decides how often.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    # A caller's max_retries=0 counts as "not given" for embeddings (1.106): our attempts would each become three.
    litellm.DEFAULT_MAX_RETRIES = 0
    return litellm
