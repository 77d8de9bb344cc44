"""The campaigns in short form; the full form is a command (docs/reliability.md)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from lab.campaigns.beginning import kill_beginnings
from lab.campaigns.cloning import kill_clones
from lab.campaigns.damaging import damage_files
from lab.campaigns.fetching import kill_readings
from lab.campaigns.filling import fill_disks
from lab.campaigns.killing import kill_syncs
from lab.campaigns.publishing import publish_while_reading
from lab.campaigns.report import Order, Tally, as_markdown
from lab.campaigns.sharing import share_installation
from lab.campaigns.travelling import kill_travellers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("campaign", "runs", "outcome"), [
    (kill_syncs, 1, "times equal to a first sync"),
    (partial(kill_beginnings, kinds={"sync": 0.7, "init": 0.3}), 2, "times equal to a first sync"),
    (partial(kill_readings, documents=30), 3, "readings equal to one without kills"),
    (kill_clones, 2, "times equal to the tip"),
    (fill_disks, 1, "times equal to a first sync with room"),
    (publish_while_reading, 11, "answers"),
    (share_installation, 1, "judgments stored"),
    (damage_files, 1, "commands that did their work"),
    (kill_travellers, 1, "replicas at the last release"),
])  # fmt: skip
def test_campaign_finds_nothing(tmp_path: Path, campaign: Callable[[Order], Tally], runs: int, outcome: str) -> None:
    tally = campaign(Order(tmp_path, 7, runs))
    assert tally.trouble == []
    assert tally.outcomes[outcome] > 0


def test_the_table_shows_what_must_not_be() -> None:
    tally = Tally("kill -9", trouble=[f"kill {number}: lost" for number in range(12)])
    tally.runs["kills"] = 1234
    tally.outcomes["in build"] = 3
    assert as_markdown([tally]).splitlines()[2:] == [
        "| kill -9 | 1,234 kills | 3 in build | 12 |",
        *(line for number in range(10) for line in ("", f"kill -9: kill {number}: lost")),
        "",
        "kill -9: 2 more",
    ]
