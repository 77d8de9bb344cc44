"""Where domains are stored: an address without a password, or files."""

import sys
from pathlib import Path

import pytest

from nornweave.carry.postgresql.server import Server
from nornweave.carry.wiring import storage_schemas, store_of
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain
from nornweave.index.corpus import DuckDBStore


def written(folder: Path, storage: str) -> Path:
    file = folder / "nornweave.yaml"
    file.write_text(f"data_dir: ./var\n{storage}\n", encoding="utf-8")
    return file


def test_domains_are_stored_in_files_unless_a_server_is_named(tmp_path: Path) -> None:
    settings = load_settings(written(tmp_path, ""))
    assert isinstance(store_of(settings, Domain.CODE), DuckDBStore)
    assert storage_schemas(settings) == ()


def test_each_domain_has_a_schema(tmp_path: Path) -> None:
    settings = load_settings(written(tmp_path, "storage: {url: 'postgresql://db/x', schema_prefix: team}"))
    assert storage_schemas(settings)[:2] == ("team_code", "team_documentation")


@pytest.mark.parametrize("url", [
    "postgresql://ann:sesame@db/x", "postgresql://db/x?password=sesame", "postgresql://db/x?sslpassword=sesame",
    "mysql://ann:sesame@db/x", "sesame", "postgresql://[sesame/x",
])  # fmt: skip
def test_a_password_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"storage\.url") as refused:
        load_settings(written(tmp_path, f"storage: {{url: '{url}'}}"))
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize("prefix", ["", "Team", "x; drop schema public", 'a"b', "é"])
def test_a_schema_has_a_plain_name(tmp_path: Path, prefix: str) -> None:
    with pytest.raises(ConfigError, match="schema_prefix"):
        load_settings(written(tmp_path, f"storage: {{url: 'postgresql://db/x', schema_prefix: '{prefix}'}}"))


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(written(tmp_path, "storage: {url: 'postgresql://db/x'}"))
    for module in [name for name in sys.modules if name.startswith("nornweave.carry.postgresql.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"pip install 'nornweave-search\[postgresql\]'"):
        store_of(settings, Domain.CODE)


def test_a_server_is_named_without_its_user() -> None:
    assert Server("postgresql://ann@db.example.org/x?sslmode=require", "team_code").name == (
        "PostgreSQL db.example.org/x, schema team_code"
    )


def test_a_database_is_not_published_as_files(tmp_path: Path) -> None:
    both = "storage: {url: 'postgresql://db/x'}\npublish: {url: 's3://bucket/x'}"
    with pytest.raises(ConfigError, match="leave one of the two out"):
        load_settings(written(tmp_path, both))
