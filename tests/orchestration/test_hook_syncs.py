"""What a webhook tells of is synced within seconds, alone, and once for many events."""

import threading
from pathlib import Path

import pytest
from configurations import HASHED, configured
from waiting import until

from lab.apis.server import serving
from lab.apis.slack import TOKEN, SlackServer
from nornweave.ask.views.status import status_document
from nornweave.connect.hooks import HookQueue
from nornweave.core.types import Domain
from orchestration import webserver
from orchestration.webserver import HookSyncs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]


def test_a_message_is_indexed_after_its_event_and_many_events_are_one_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKED_TOKEN", TOKEN)
    monkeypatch.setenv("NORNWEAVE_CONFIG", str(tmp_path / "nornweave.yaml"))
    team = SlackServer()
    channel = team.add_channel("C01", "engineering")
    team.say(channel, "Zebracorns return 418.")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("Alice: not told of\n")
    with serving(team):
        told = {"type": "slack", "token_env": "HOOKED_TOKEN", "api_url": f"{team.url}/api"}
        settings = configured(
            tmp_path,
            {"id": "chat", "domain": "conversations", **told, "webhook_secret_env": "HOOKED_SECRET"},
            {"id": "notes", "domain": "conversations", "type": "transcripts", "path": "notes"},
            domains={"conversations": HASHED},
        )
        queue, syncs, stopping = HookQueue(settings.data_dir), HookSyncs(settings.data_dir), threading.Event()
        for number in range(50):
            queue.put([f"event-{number}"], ["chat", "removed-since"])
        running = threading.Thread(target=syncs.run, args=(stopping,))
        running.start()
        try:
            until(lambda: queue.waiting() == {}, within_s=240)
            status = status_document(settings, Domain.CONVERSATIONS)
            assert (len(status["runs"]), status["documents"]) == (1, 1), "the other source was not told of"
            team.say(channel, "Yellowtails swim in shoals.")
            queue.put(["next"], ["chat"])
            until(lambda: queue.waiting() == {}, within_s=240)
            assert len(status_document(settings, Domain.CONVERSATIONS)["runs"]) == 2
        finally:
            stopping.set()
            running.join()
            syncs.stop()


def test_a_sync_that_fails_is_tried_again_and_then_left_to_the_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NORNWEAVE_CONFIG", str(tmp_path / "nornweave.yaml"))
    monkeypatch.setattr(webserver, "AGAIN_S", 0.0)
    monkeypatch.setattr(webserver, "TRIES", 2)
    told = {"type": "slack", "token_env": "HOOKED_NOWHERE", "webhook_secret_env": "HOOKED_SECRET"}
    settings = configured(
        tmp_path, {"id": "chat", "domain": "conversations", **told}, domains={"conversations": HASHED}
    )
    queue, syncs = HookQueue(settings.data_dir), HookSyncs(settings.data_dir)
    queue.put(["event"], ["chat"])

    def is_left() -> bool:
        syncs.look()
        return queue.waiting() == {}

    until(is_left, within_s=240)
    assert [record.message.split(":")[1] for record in caplog.records if "webhooks" in record.message] == [
        " a sync that webhooks asked for failed, tried again in 0 s",
        " a sync that webhooks asked for failed, left to the schedule",
    ]
    assert "HOOKED_NOWHERE" in caplog.text
    (tmp_path / "nornweave.yaml").write_text("sources: [")
    queue.put(["another"], ["chat"])
    stopping = threading.Event()
    running = threading.Thread(target=syncs.run, args=(stopping,))
    running.start()
    until(lambda: "what webhooks tell is not synced now" in caplog.text, within_s=60)
    stopping.set()
    running.join()
    assert queue.waiting() == {"chat": 1}
