"""A small configured workspace over real files, and the instance that its runs are recorded in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml

from nornweave.settings import Settings, load_settings
from orchestration.instance import POSTGRES_VARIABLE, open_instance

HERE = Path(__file__).parent
# Dagster 1.13 warns of its own use of its own parameters, and its SQLite storage leaves connections to the collector.
OWN_WARNINGS = ("ignore::dagster.BetaWarning", "ignore::dagster.PreviewWarning", "ignore::dagster.SupersessionWarning")

HASHED = {"embedding": {"model": "hash:64", "dimensions": 64}}
CODE = {
    "ledger.py": 'def post(entry):\n    """Post an entry to the ledger."""\n    return entry\n',
    "refund.py": "def refund(payment):\n    return payment.amount\n",
}
DOCUMENTATION = {
    "guide.md": "# Guide\n\nPayments settle in two days.\n",
    "faq.md": "# FAQ\n\nRefunds take a week.\n",
}

Configure = Callable[..., Settings]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            for warning in OWN_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(autouse=True)
def _no_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(POSTGRES_VARIABLE, raising=False)


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Write sources of two domains and a configuration; keyword arguments override a domain's settings."""

    def write(**domains: dict[str, object]) -> Settings:
        for folder, documents in (("code", CODE), ("docs", DOCUMENTATION)):
            for name, text in documents.items():
                file = tmp_path / folder / name
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8")
        file = tmp_path / "nornweave.yaml"
        configured = {
            "data_dir": "var",
            "sources": [
                {"id": "payments", "domain": "code", "type": "files", "path": "code"},
                {"id": "handbook", "domain": "documentation", "type": "files", "path": "docs"},
            ],
            "domains": {"code": HASHED, "documentation": HASHED, **domains},
        }
        file.write_text(yaml.safe_dump(configured), encoding="utf-8")
        return load_settings(file, {})

    return write


@pytest.fixture
def settings(configure: Configure) -> Settings:
    return configure()


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with open_instance(settings) as opened:
        yield opened
