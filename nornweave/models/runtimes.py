"""Import third-party runtimes without their side effects."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any

from nornweave.core.extras import install_command, optional

TORCH_PACKAGES = ("torch", "transformers", "sentence_transformers")


def lacks_torch() -> str | None:
    """Say what to install where the packages that run any sentence-transformers model are missing."""
    missing = [name for name in TORCH_PACKAGES if importlib.util.find_spec(name) is None]
    if not missing:
        return None
    return (
        f"it needs the package {missing[0]}, which is not installed: {install_command('torch')}, "
        "or use the default embedding model on device 'cpu'"
    )


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

    Its own retries are off, too: its caller decides how often.

    Raises:
        ConfigError: it is not installed.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with optional("llm", "hosted models"):
        litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    # A caller's max_retries=0 counts as "not given" for embeddings (1.106): our attempts would each become three.
    litellm.DEFAULT_MAX_RETRIES = 0
    return litellm
