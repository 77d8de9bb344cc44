"""Whom sources let in comes to replicas with what is published, and counts there for as long as here."""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from publishers import Replica

from lab.access import rights
from nornweave.carry.publishing import publish_domains, refresh_workspace
from nornweave.connect.connectors import load_settings
from nornweave.core.access import account
from nornweave.core.membership import Granted, membership_file, read_table, write_table
from nornweave.core.types import Domain


def test_replicas_go_by_the_membership_that_the_publisher_read_last(
    tmp_path: Path, publish_to: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "SERVICES", (rights.SlackRights,))
    (tmp_path / "publisher").mkdir()
    with ExitStack() as stack:
        made = rights.world(tmp_path / "publisher", stack, seed=3, people=2, count=1)
        file = made.settings.file
        file.write_text(json.dumps({**json.loads(file.read_text()), "publish": publish_to}))
        made.settings = load_settings(file, {})
        slack = made.services["chat"].api
        slack.channels["C00"]["is_private"] = True
        slack.inside["C00"] = {"U00"}
        for user in slack.users.values():
            user |= {"deleted": False, "team_id": "T01", "is_restricted": False}
        made.sync()
        publish_domains(made.settings, [Domain.CONVERSATIONS, Domain.CODE])
        replica = Replica(tmp_path / "replica", publish_to, {"tokens": str(tmp_path / "publisher" / "tokens.yaml")})
        replica.look()

        def readers() -> set[str]:
            known = replica.follower.settings.memberships
            assert known is not None
            names = {person.name: [account("email", person.email)] for person in made.people}
            return {name for name, held in names.items() if "slack:channel:C00" in known.expanded(held)}

        assert replica.follower.settings.restricted_sources(Domain.CONVERSATIONS) == {"chat": ("rights:source",)}
        assert readers() == {"person0"}
        slack.inside["C00"] = {"U01"}
        made.refresh()
        refresh_workspace(made.settings)
        assert readers() == {"person0"}, "nobody has looked yet"
        replica.look()
        assert readers() == {"person1"}

        there = membership_file(made.settings.data_dir, "chat")
        table = read_table(there)
        assert table is not None
        old = {name: Granted(members=each.members, verified_at=0.0) for name, each in table.grants.items()}
        write_table(there, replace(table, grants=old, tried_at=table.tried_at + 1))
        refresh_workspace(made.settings)
        replica.look()
        assert readers() == set(), "what is too old here is too old there"
        write_table(there, replace(table, tried_at=table.tried_at - 60))
        refresh_workspace(made.settings)
        replica.look()
        assert readers() == set(), "what was asked for earlier replaces nothing"
