"""The configurations of tests: folders of files, and encoders that need no model."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nornweave.config import Settings
from nornweave.connect.connectors import load_settings

HASHED: Mapping[str, Any] = {"embedding": {"model": "hash:64", "dimensions": 64}}
"""Settings of a domain whose encoder needs no model."""


def files(name: str, domain: str = "documentation", path: str = "", **keys: Any) -> dict[str, Any]:
    """Return a source of files in the folder of its name, unless another is given."""
    return {"id": name, "domain": domain, "type": "files", "path": path or name, **keys}


def write_config(folder: Path, *sources: Mapping[str, Any], domain: Mapping[str, Any] = HASHED, **keys: Any) -> Path:
    """Write a configuration of sources, whose domains are all alike, with whatever else it shall say."""
    document = {"data_dir": "var", "sources": sources, "domains": {one["domain"]: domain for one in sources}, **keys}
    file = folder / "nornweave.yaml"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def configured(folder: Path, *sources: Mapping[str, Any], **keys: Any) -> Settings:
    """Write a configuration and read it."""
    return load_settings(write_config(folder, *sources, **keys), {})
