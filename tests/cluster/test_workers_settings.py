"""What is refused before anything starts."""

from pathlib import Path

import pytest
import yaml
from kombu.utils.url import parse_url

from nornweave.carry.wiring import leased_folder
from nornweave.carry.workers import broker_of, distributed, workers_of
from nornweave.config import Settings
from nornweave.config.workspace import WorkersSettings
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain
from nornweave.models.encoders.hashing import HashEncoder

LAUNCHER = {"module": "dagster_celery.launcher", "class": "CeleryRunLauncher"}


def settings_with(tmp_path: Path, **workers: object) -> Settings:
    file = tmp_path / "nornweave.yaml"
    file.write_text(yaml.safe_dump({"workers": workers} if workers else {}))
    return load_settings(file, {})


def test_without_workers_everything_stays_on_this_machine(tmp_path):
    settings, encoder = settings_with(tmp_path), HashEncoder(64)
    assert distributed(settings, Domain.CODE, encoder) is encoder
    with pytest.raises(ConfigError, match="key 'workers' is missing"):
        workers_of(settings)


@pytest.mark.parametrize(("workers", "message"), [
    ({"objects": "s3://b/p", "broker": "redis://:hidden@h/0"}, "holds a password"),
    ({"objects": "ftp://b/p"}, "expected an address of s3, gs, az, file"),
    ({"objects": "s3://b/p", "broker": "http://h"}, "expected an address that begins with redis"),
    ({"objects": "s3://b/p", "run_launcher": LAUNCHER}, "runs on other machines need leases: true"),
    ({"objects": "s3://b/p", "leases": True, "run_launcher": {"module": "m"}}, "run_launcher.class' is missing"),
    ({"objects": "s3://b/p", "runs": "celery"}, r"yaml:3: 'workers.runs' is no setting any more: .*run_launcher names"),
    ({"objects": "s3://b/p", "kubernetes": {"job_image": "nornweave"}}, "'workers.kubernetes' is no setting any more"),
])  # fmt: skip
def test_wrong_settings_are_named(tmp_path, workers, message):
    with pytest.raises(ConfigError, match=message) as caught:
        settings_with(tmp_path, **workers)
    assert "hidden" not in str(caught.value)


def test_a_broker_of_the_environment_comes_first_and_is_not_shown(tmp_path):
    workers = workers_of(settings_with(tmp_path, objects="s3://b/p", broker="redis://h/0"))
    assert broker_of(workers, {"NORNWEAVE_BROKER_URL": "amqps://u:hidden@h"}) == "amqps://u:hidden@h"
    with pytest.raises(ConfigError, match="NORNWEAVE_BROKER_URL: expected") as caught:
        broker_of(workers, {"NORNWEAVE_BROKER_URL": "http://u:hidden@h"})
    assert "hidden" not in str(caught.value)


def test_leases_need_postgresql(tmp_path, monkeypatch):
    monkeypatch.delenv("NORNWEAVE_DAGSTER_POSTGRES_URL", raising=False)
    shared = leased_folder(settings_with(tmp_path, objects=f"file://{tmp_path}/objects", leases=True), Domain.CODE)
    assert shared
    with pytest.raises(ConfigError, match="needs PostgreSQL; set NORNWEAVE_DAGSTER_POSTGRES_URL"):
        shared.lock("sync", 0)


@pytest.mark.parametrize("password", ["a@b/c:d%e?f#g", "plain"])
def test_a_password_of_its_own_may_hold_any_character(password: str) -> None:
    environment = {"NORNWEAVE_BROKER_URL": "redis://user@broker:6379/0", "NORNWEAVE_BROKER_PASSWORD": password}
    address = broker_of(WorkersSettings(objects="file:///tmp/x"), environment)
    parsed = parse_url(address)
    assert (parsed["userid"], parsed["password"]) == ("user", password)
    assert (parsed["hostname"], parsed["port"]) == ("broker", 6379)
