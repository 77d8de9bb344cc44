"""What Dagster loads: valid, described, versioned; and readable when the configuration is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from workspace_support import HASHED, Configure

from nornweave.config import Settings
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain
from nornweave.ingest.records import INVARIANTS
from orchestration.assets import ANSWERS_KEY, LEDGER_KEY, QUERY_MAP_KEY, STEPS, asset_key, code_versions
from orchestration.definitions import build_definitions, settings_from_environment

ROOT = Path(__file__).parents[2]


def specs_of(settings: Settings) -> dict[str, dg.AssetSpec]:
    return {spec.key.to_user_string(): spec for spec in build_definitions(settings).resolve_all_asset_specs()}


def test_each_served_domain_is_a_group_of_six_assets_in_line(settings: Settings) -> None:
    specs = specs_of(settings)

    for key, group in ((LEDGER_KEY, "ledger"), (ANSWERS_KEY, "evaluation")):
        last = specs.pop(key.to_user_string())
        assert {dep.asset_key for dep in last.deps} == {
            asset_key(domain, "generation") for domain in (Domain.CODE, Domain.DOCUMENTATION)
        }
        assert (last.group_name, bool(last.description)) == (group, True)
    learnt = specs.pop(QUERY_MAP_KEY.to_user_string())
    assert {dep.asset_key for dep in learnt.deps} == {asset_key(Domain.CODE, "generation")}
    assert (learnt.group_name, bool(learnt.description)) == ("query_map", True)
    assert set(specs) == {f"{domain}/{step}" for domain in ("code", "documentation") for step in STEPS}
    for domain in (Domain.CODE, Domain.DOCUMENTATION):
        for before, after in zip(STEPS, STEPS[1:], strict=False):
            spec = specs[f"{domain}/{after}"]
            assert [dep.asset_key for dep in spec.deps] == [asset_key(domain, before)]
            assert spec.group_name == domain.value
    assert all(spec.description and spec.owners and spec.kinds and spec.code_version for spec in specs.values())


def test_without_sources_all_four_domains_are_there(settings: Settings) -> None:
    specs = specs_of(settings.model_copy(update={"sources": ()}))

    assert {spec.group_name for spec in specs.values()} == {
        *(domain.value for domain in Domain),
        "ledger",
        "evaluation",
        "query_map",
    }
    assert len(specs) == 4 * len(STEPS) + 3


def test_every_invariant_is_a_described_blocking_check_before_publication(settings: Settings) -> None:
    graph = build_definitions(settings).resolve_asset_graph()

    for domain in (Domain.CODE, Domain.DOCUMENTATION):
        keys = graph.get_check_keys_for_assets({asset_key(domain, "index")})
        assert {key.name for key in keys} == set(INVARIANTS)
        assert all(graph.get_check_spec(key).blocking and graph.get_check_spec(key).description for key in keys)


@pytest.mark.parametrize(("override", "changed"), [
    ({}, set()),
    ({"chunking": {"max_chunk_tokens": 128}}, {"documents", "chunks"}),
    ({"embedding": {"model": "hash:32", "dimensions": 32}}, set(STEPS)),
    ({"storage": {"vector_index": "exact"}}, {"index", "generation"}),
    ({"embedding": {"model": "hash:64", "dimensions": 64, "batch_size": 7}}, set()),
])  # fmt: skip
def test_code_versions_follow_what_changes_the_output(
    configure: Configure, override: dict[str, object], changed: set[str]
) -> None:
    before = code_versions(configure().domains[Domain.CODE])
    after = code_versions(configure(code={**HASHED, **override}).domains[Domain.CODE])

    assert {step for step in STEPS if before[step] != after[step]} == changed


def test_a_wrong_schedule_names_its_variable(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="NORNWEAVE_REFRESH_CRON: 'hourly' is not a cron expression"):
        build_definitions(settings, refresh_cron="hourly")


def test_a_missing_configuration_says_which_variable_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="NORNWEAVE_CONFIG names the file") as caught:
        settings_from_environment({"NORNWEAVE_CONFIG": str(tmp_path / "none.yaml")})
    assert caught.value.__suppress_context__, "the trace of what found it out is no help"


@pytest.mark.slow
def test_a_broken_configuration_is_readable_in_dagster_wherever_it_is_started(
    settings: Settings, tmp_path: Path
) -> None:
    """``workspace.yaml`` leads there; ``test_webserver`` sees definitions that are right."""
    settings.file.write_text("data_dir: var\nsauces: []\n", encoding="utf-8")
    (home := tmp_path / "home").mkdir()
    own = {"NORNWEAVE_CONFIG": str(settings.file), "DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "1"}
    result = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", str(ROOT / "workspace.yaml")],
        env={**os.environ, **own}, cwd=home, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    said = result.stdout + result.stderr
    assert result.returncode == 1
    assert "unknown key 'sauces'" in said
    assert "pydantic" not in said
