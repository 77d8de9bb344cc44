"""One domain of the example corpus has the ``vss`` index, so that every demo and test run searches it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from recall_workspace import NO_MODELS, current_file, publish

from nornweave.connect.connectors import load_settings
from nornweave.index.searching.conditions import PathGlob
from nornweave.index.searching.generation import open_generation
from nornweave.index.index import Index
from nornweave.index.searching.ranked_chunks import best
from nornweave.index.searching.vectors import HnswVectors
from nornweave.core.types import Domain

ROOT = Path(__file__).parents[2]
CONFIGURED = yaml.safe_load((ROOT / "nornweave.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """The documentation of the example platform, stored as the demo stores it."""
    file = tmp_path_factory.mktemp("examples") / "nornweave.yaml"
    (source,) = [one for one in CONFIGURED["sources"] if one["id"] == "payments-docs"]
    source = {**source, "path": str(ROOT / source["path"]), "metadata": str(ROOT / source["metadata"])}
    domains = {"documentation": {**NO_MODELS, "storage": CONFIGURED["domains"]["documentation"]["storage"]}}
    file.write_text(json.dumps({"data_dir": "var", "sources": [source], "domains": domains}), encoding="utf-8")
    settings = load_settings(file, {})
    publish(settings)
    with open_generation(current_file(settings, Domain.DOCUMENTATION)) as opened:
        yield opened


def test_the_index_is_searched_unfiltered_and_filtered(generation: Index) -> None:
    assert generation.meta["built_with"] == "hnsw"
    assert isinstance(generation._parts.opened.mapped.vectors, HnswVectors)
    everything = np.arange(generation.chunk_count, dtype=np.int32)
    path = next(iter(generation.paths()))
    for within in (None, generation.within([PathGlob(path)])):
        allowed = everything if within is None else np.flatnonzero(within).astype(np.int32)
        assert 0 < len(allowed) < generation.chunk_count or within is None
        for query in generation.vectors(everything[::7]):
            expected = best(generation.similarities(query, allowed), 10, allowed)
            hits = generation.dense(query, 10, within)
            assert hits.scores == pytest.approx(expected.scores, abs=1e-4)
