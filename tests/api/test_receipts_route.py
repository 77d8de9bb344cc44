"""``/receipts``: an operator gets a signed receipt, and the same again by its id; what is wrong is named."""

import shutil
from pathlib import Path

import pytest
from access_workspace import CHIEF, SERVICE, STAFF, app_of, client_as, publish_access, write_access_workspace
from api_support import is_problem
from live_server import live
from scripted_engine import copied

from api.app import create_app
from nornweave.cli.receipt import make_receipt
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.deletion import Deleted
from nornweave.core.signatures import check_signed, own_keys
from nornweave.core.types import Domain

KEYS = {"domain": "code", "source_id": "vault", "source_path": "keys.py"}


@pytest.fixture(scope="module")
def deleted(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A workspace whose vault has lost a document."""
    folder = tmp_path_factory.mktemp("deleted")
    settings = write_access_workspace(folder)
    publish_access(settings)
    (folder / "vault" / "keys.py").unlink()
    (folder / "vault" / "other.py").write_text("OTHER_LIMIT = 9\n", encoding="utf-8")
    publish_access(settings)
    return settings


@pytest.fixture
def settings(deleted: Settings, tmp_path: Path) -> Settings:
    return copied(deleted, tmp_path)


async def test_operators_get_receipts_and_nobody_else(settings: Settings) -> None:
    async with app_of(settings) as app:
        async with client_as(app, STAFF) as client:
            is_problem(await client.post("/receipts", json=KEYS), 403)
            is_problem(await client.get(f"/receipts/{'0' * 24}"), 403)
        async with client_as(app, CHIEF) as client:
            first = (await client.post("/receipts", json=KEYS)).json()
            assert not first["gone"]
            assert {"place": "kept generations", "left": ["gen-000001"]}.items() <= first["places"][1].items()
            purged = (await client.post("/receipts", json={**KEYS, "purge": True})).json()
            assert purged["gone"] and purged["purged"]
            check_signed(purged, own_keys(settings.data_dir))
            assert (await client.get(f"/receipts/{purged['id']}")).json() == purged
            is_problem(await client.get(f"/receipts/{'0' * 24}"), 404)
            is_problem(await client.get("/receipts/..%2f..%2ftokens.yaml"), 404)


async def test_what_is_wrong_is_named(settings: Settings) -> None:
    async with app_of(settings) as app, client_as(app, SERVICE) as client:
        for body, field in (
            ({**KEYS, "domain": "nowhere"}, "domain"),
            ({**KEYS, "source_path": ""}, "source_path"),
            ({**KEYS, "source_path": "a\0b"}, "source_path"),
            ({**KEYS, "source": "vault"}, "source"),
            ({"domain": "code", "source_path": "keys.py"}, "source_id"),
        ):
            problem = is_problem(await client.post("/receipts", json=body), 422)
            assert field in str(problem["errors"]), problem
        strange = {**KEYS, "source_id": "--purge", "source_path": "--config=/etc/passwd"}
        assert (await client.post("/receipts", json=strange)).json()["source_path"] == "--config=/etc/passwd"


def test_a_replica_is_asked_for_its_own(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NORNWEAVE_SERVICE_TOKEN", SERVICE)
    deleted = Deleted(domain=Domain.CODE, source_id="vault", path="keys.py")
    shutil.copytree(tmp_path, elsewhere := tmp_path.with_name("elsewhere"))
    replica = load_settings(elsewhere / "nornweave.yaml", {})
    with live(create_app(replica, environment={"NORNWEAVE_SERVICE_TOKEN": SERVICE})) as url:
        places = make_receipt(settings, deleted, purge=False, replicas=[url])["places"]
    asked = places[-1]
    assert asked["place"] == f"replica {url}"
    assert "kept generations" in asked["left"]
