"""Nobody is shown what an agent on another machine could not check for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from live_server import live
from recall_workspace import configure, publish, write_workspace
from remote_hub import ForeignServer, Hub

from api.app import create_app
from nornweave.config.access import AccessSettings
from nornweave.core.access import line_of

Start = Callable[..., ForeignServer]
Serve = Callable[..., Hub]
Join = Callable[..., tuple[Hub, ForeignServer]]
OPERATES = "operates-the-service"
STAFF, GUEST = "nw_staff", "nw_guest"


@pytest.fixture
def tokens(tmp_path: Path) -> dict[str, Any]:
    """Return a configuration of access: one token in a group, one in none."""
    file = tmp_path / "tokens.yaml"
    file.write_text(f"{line_of(STAFF, ['staff'])}\n{line_of(GUEST, [])}\n")
    return {"access": {"tokens": str(file)}}


def items(served: Hub, token: str) -> int:
    """Return how many items of the vault a viewer is shown."""
    return len(served.query(token=token)["items"])


@pytest.mark.parametrize(
    ("entry", "shown"), [({}, [3, 0, 0]), ({"groups": ["staff"]}, [3, 3, 0]), ({"public": True}, [3, 3, 3])]
)
def test_items_are_shown_to_whom_the_entry_names_and_to_those_who_see_everything(
    joined: Join, tokens: dict[str, Any], entry: dict[str, Any], shown: list[int]
) -> None:
    served, server = joined(entry=entry, token=OPERATES, **tokens)
    assert [items(served, token) for token in (OPERATES, STAFF, GUEST)] == shown
    assert len(server.asked) == sum(map(bool, shown)), "nobody else makes it asked"
    listed = served.http.get("/agents", headers={"authorization": f"Bearer {STAFF}"}).json()["agents"]
    assert any(agent["remote"] for agent in listed) is bool(shown[1])


def test_an_agent_that_is_to_check_groups_and_does_not_say_so_shows_nothing(
    joined: Join, tokens: dict[str, Any]
) -> None:
    served, server = joined(entry={"checks_groups": True}, token=OPERATES, **tokens)
    assert items(served, STAFF) == 0
    assert server.asked[0]["headers"]["nornweave-viewer-groups"] == "staff"
    server.answers("heed")
    assert items(served, STAFF) == 3


def test_only_operators_register_agents(foreign: Start, hub: Serve, tokens: dict[str, Any]) -> None:
    server = foreign()
    served = hub({"url": server.url, "public": True}, token=OPERATES, **tokens)
    body = {"agent_id": "vault", "domain_id": "documentation", "url": server.url}
    for method, path, sent in (
        ("POST", "/agents/register", body),
        ("POST", "/agents/vault/heartbeat", {}),
        ("DELETE", "/agents/vault", None),
    ):
        answer = served.http.request(method, path, json=sent, headers={"authorization": f"Bearer {STAFF}"})
        assert answer.status_code == 403


def test_a_nornweave_agent_narrows_what_it_shows_to_the_groups_it_is_told(
    tmp_path: Path, hub: Serve, tokens: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "of-the-shop")
    (tmp_path / "shop").mkdir()
    settings = write_workspace(tmp_path / "shop")
    restricted = [
        source.model_copy(update={"access": ("staff",)}) if source.id == "handbook" else source
        for source in settings.sources
    ]
    settings = configure(tmp_path / "shop").model_copy(update={"sources": tuple(restricted)})
    (tmp_path / "none.yaml").write_text("")
    access = {"tokens": tmp_path / "none.yaml", "oidc": None, "operators": ()}
    settings = settings.model_copy(update={"access": AccessSettings(**access)})
    publish(settings)
    with live(create_app(settings, environment={"NORNWEAVE_SERVICE_TOKEN": "of-the-shop"})) as url:
        served = hub({"url": url, "token_env": "SHOP_TOKEN", "checks_groups": True}, token=OPERATES, **tokens)
        served.register(f"{url}/agents/documentation", "shop-docs")
        shown = {
            token: len(served.query("refund runbook of payments", token=token, domains=["documentation"])["items"])
            for token in (OPERATES, STAFF)
        }
        refused = served.query("refund runbook of payments", token=GUEST)
        direct = httpx.post(
            f"{url}/agents/documentation/recall",
            json={"query_text": "refund runbook of payments"},
            headers={"authorization": "Bearer of-the-shop", "nornweave-viewer-groups": "other,groups"},
        )
    assert shown[OPERATES] == shown[STAFF] > 0
    assert refused["items"] == []
    assert direct.json()["items"] == []
