"""What publishers may do to each other and to a store, and what they may not."""

import json
from pathlib import Path
from typing import Any

import pytest
from publishers import DOCUMENTATION, Publisher, Replica
from s3_proxy import PART, Call, Proxy

from api.metrics import IndexState
from nornweave.ask.engine import Engine
from nornweave.ask.views.status import status_document
from nornweave.carry.publishing import publish_after_sync, publish_domains
from nornweave.core.errors import ConfigError

To = dict[str, object]


def test_a_second_publication_of_the_same_generation_writes_nothing(publisher: Publisher, proxy: Proxy) -> None:
    assert publisher.number() == 1
    written = proxy.count("PUT", "")
    assert publisher.number() == 1
    assert proxy.count("PUT", "") == written


def test_of_two_publishers_at_once_one_wins_and_the_other_is_told(
    publisher: Publisher, tmp_path: Path, publish_to: To, proxy: Proxy
) -> None:
    other = Publisher(tmp_path / "other", publish_to)

    def other_first(call: Call) -> Any:
        if call.method == "PUT" and call.path.endswith("CURRENT"):
            proxy.fault = None
            assert other.number(take_over=True) == 1
        return call.answer()

    proxy.fault = other_first
    lost = publisher.copy()
    assert isinstance(lost, str)
    assert "another publisher published documentation while gen-000001" in lost
    again = publisher.copy()
    assert isinstance(again, str)
    assert "take-over" in again
    assert publisher.number(take_over=True) == 2
    overtaken = other.copy()
    assert isinstance(overtaken, str)
    assert "another publisher" in overtaken


def test_a_publisher_whose_disk_was_lost_goes_on_after_the_number_of_the_store(publisher: Publisher) -> None:
    publisher.number()
    publisher.change("A second edition.")
    assert publisher.number() == 2
    publisher.lose_disk()
    assert publisher.change("A third edition.") == "gen-000001"
    assert publisher.number() == 3
    assert publisher.change("A fourth edition.") == "gen-000004"
    assert publisher.number() == 4


def test_an_older_generation_is_published_under_a_new_number_without_copying_it(
    publisher: Publisher, proxy: Proxy, tmp_path: Path, publish_to: To
) -> None:
    publisher.number()
    publisher.change("A mistake.")
    publisher.number()
    publisher.files.point_at(publisher.files.all()[0])
    written = proxy.count("PUT", PART)
    assert publisher.number() == 3
    assert proxy.count("PUT", PART) == written
    replica = Replica(tmp_path / "replica", publish_to)
    assert replica.look() == "gen-000003"
    assert not any("mistake" in one for one in replica.answers("mistake"))


def test_a_pointer_whose_write_was_answered_with_an_error_counts_if_it_was_written(
    publisher: Publisher, proxy: Proxy
) -> None:
    def written_and_lost(call: Call) -> Any:
        if call.method == "PUT" and call.path.endswith("CURRENT"):
            call.answer()
            return None
        return call.answer()

    proxy.fault = written_and_lost
    assert publisher.number() == 1


def test_who_does_not_remember_a_publication_does_not_publish_it_again(publisher: Publisher) -> None:
    publisher.number()
    (publisher.settings.data_dir / "publication" / "documentation.json").unlink()  # killed before it was noted
    assert publisher.number() == 1
    publisher.change("Second.")
    assert publisher.number() == 2


def _store_behind(publisher: Publisher) -> float:
    with Engine(publisher.settings, watch=False) as engine:
        gauges = {each.name: each for each in IndexState(engine).collect()}
    (sample,) = gauges["nornweave_store_behind_seconds"].samples
    return sample.value


def test_an_upload_that_breaks_is_named_in_the_status_and_made_up_for_by_the_next(
    publisher: Publisher, proxy: Proxy, tmp_path: Path, publish_to: To
) -> None:
    publisher.number()
    replica = Replica(tmp_path / "replica", publish_to)
    assert replica.look() == "gen-000001"
    publisher.change("Not copied at first.")
    proxy.fault = lambda call: None if call.method == "PUT" and call.path.endswith("CURRENT") else call.answer()
    problem = publish_after_sync(publisher.settings, DOCUMENTATION)
    assert problem
    copied = status_document(publisher.settings, DOCUMENTATION)["copy"]
    assert copied
    assert (copied["problem"], copied["number"], copied["generation"]) == (problem, 1, "gen-000001")
    assert "not-a-secret" not in json.dumps(copied)
    assert _store_behind(publisher) > 0, "the alert NornWeaveStoreBehind watches it"
    proxy.fault = None
    assert replica.look() == "gen-000001"
    assert publish_after_sync(publisher.settings, DOCUMENTATION) is None
    copied = status_document(publisher.settings, DOCUMENTATION)["copy"]
    assert copied
    assert (copied["problem"], copied["number"]) == (None, 2)
    assert _store_behind(publisher) == 0
    assert replica.look() == "gen-000002"


def test_without_a_store_nothing_is_copied_and_the_command_says_what_is_missing(publisher: Publisher) -> None:
    publisher.configure(publish=None)
    assert publish_after_sync(publisher.settings, DOCUMENTATION) is None
    assert status_document(publisher.settings, DOCUMENTATION)["copy"] is None
    with pytest.raises(ConfigError, match="publish"):
        publish_domains(publisher.settings, [DOCUMENTATION])


@pytest.mark.parametrize(("url", "problem"), [
    ("http://bucket/x", "expected an address of s3, gs, az, file"),
    ("s3://key:secret@bucket/x", "credentials come from the environment"),
    ("s3:///x", "names no bucket"),
    ("file://relative/x", "absolute path"),
    ("file:///srv/../etc", "absolute path"),
])  # fmt: skip
def test_an_address_that_is_none_or_holds_a_secret_is_refused(publisher: Publisher, url: str, problem: str) -> None:
    publisher.configure(publish={"url": url})
    with pytest.raises(ConfigError, match=problem):
        _ = publisher.settings


@pytest.fixture
def folder(tmp_path: Path, publisher: Publisher) -> Path:
    store = tmp_path / "store"
    publisher.configure(publish={"url": f"file://{store}", "keep_generations": 1, "grace_hours": 1})
    return store


def _parts(folder: Path) -> set[str]:
    return {file.name for file in (folder / "domains" / "documentation").iterdir() if file.name != "CURRENT"}


def test_what_no_kept_generation_needs_goes_after_the_grace_period_and_not_before(
    publisher: Publisher, folder: Path
) -> None:
    publisher.number()
    first = _parts(folder)
    publisher.change("Second.")
    publisher.number()
    assert first < _parts(folder)  # replaced a moment ago: readers may be at it
    publisher.configure(publish={"url": f"file://{folder}", "keep_generations": 2, "grace_hours": 0})
    publisher.change("Third.")
    publisher.number()
    assert not first & _parts(folder)
    assert len(_parts(folder)) == 2 * len(first), "one that was replaced is kept whatever its time"
    publisher.configure(publish={"url": f"file://{folder}", "keep_generations": 1, "grace_hours": 0})
    publisher.change("Fourth.")
    assert publisher.number() == 4
    assert len(_parts(folder)) == len(first)


def test_parts_of_an_upload_that_broke_are_used_by_the_next_one(publisher: Publisher, proxy: Proxy) -> None:
    publisher.number()
    publisher.change("Second.")
    proxy.fault = lambda call: None if call.method == "PUT" and call.path.endswith("CURRENT") else call.answer()
    assert isinstance(publisher.copy(), str)
    sent = proxy.count("PUT", PART)
    proxy.fault = None
    assert publisher.number() == 2
    assert proxy.count("PUT", PART) == sent
