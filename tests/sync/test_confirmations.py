"""Confirmations: signed, for one domain and one state, used once; everything else is refused with its reason."""

import json
import shutil
import time
from pathlib import Path

import pytest
from waiting import Clock

from nornweave.core.errors import ConfigError, ConfirmationError
from nornweave.core.signatures import signer_of
from nornweave.core.types import Domain
from nornweave.ingest.confirmations import VALID_FOR_S, Confirmations, ConfirmationSubject

STATE = "digest of what is held"
REMOVALS = (Domain.CODE, ConfirmationSubject.REMOVALS)


@pytest.fixture
def clock() -> Clock:
    return Clock(time.time())


@pytest.fixture
def confirmations(tmp_path: Path, clock: Clock) -> Confirmations:
    return Confirmations(data_dir=tmp_path / "var", clock=clock)


@pytest.fixture
def file(confirmations: Confirmations) -> Path:
    """Return the file of a confirmation that was issued and not used."""
    confirmations.issue(*REMOVALS, STATE)
    return confirmations.folder / "code.removals.json"


def refusal(confirmations: Confirmations, state: str = STATE) -> str:
    with pytest.raises(ConfirmationError) as raised:
        confirmations.redeem(*REMOVALS, state)
    assert not confirmations.redeem(*REMOVALS, state), "what was refused is gone"
    return str(raised.value)


def test_a_confirmation_counts_once(confirmations: Confirmations, file: Path) -> None:
    assert confirmations.redeem(*REMOVALS, STATE)
    assert not confirmations.redeem(*REMOVALS, STATE)


def test_without_a_confirmation_nothing_is_confirmed_and_nothing_is_written(confirmations: Confirmations) -> None:
    assert not confirmations.redeem(*REMOVALS, STATE)
    assert not confirmations.data_dir.exists()


def test_a_confirmation_that_is_put_back_is_refused(confirmations: Confirmations, file: Path, tmp_path: Path) -> None:
    copy = shutil.copy(file, tmp_path / "copy")
    confirmations.redeem(*REMOVALS, STATE)
    shutil.copy(copy, file)

    assert "has been used already" in refusal(confirmations)


def test_a_confirmation_of_another_state_is_refused(confirmations: Confirmations, file: Path) -> None:
    assert "what is held has changed" in refusal(confirmations, "another state")


@pytest.mark.parametrize(("name", "value"), [
    ("state", "another state"), ("issued_at", 1_800_000_000), ("signature", ""), ("signature", "é"),
    ("nonce", "../x"),
])  # fmt: skip
def test_a_confirmation_that_was_altered_is_refused(
    confirmations: Confirmations, file: Path, name: str, value: object
) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), name: value}))
    assert "it was changed after it was signed" in refusal(confirmations)


def test_a_confirmation_of_another_data_directory_is_refused(
    confirmations: Confirmations, file: Path, tmp_path: Path, clock: Clock
) -> None:
    other = Confirmations(data_dir=tmp_path / "other", clock=clock)
    other.issue(*REMOVALS, STATE)
    shutil.copy(other.folder / file.name, file)
    assert "not one of the keys that are trusted here" in refusal(confirmations)


def test_a_confirmation_of_another_domain_or_subject_is_refused(confirmations: Confirmations, file: Path) -> None:
    for domain, subject in (
        (Domain.RESEARCH, ConfirmationSubject.REMOVALS),
        (Domain.CODE, ConfirmationSubject.QUALITY),
    ):
        confirmations.issue(domain, subject, STATE)
        (confirmations.folder / f"{domain.value}.{subject.value}.json").replace(file)
        assert f"it is about {subject.value} in {domain.value}" in refusal(confirmations)


@pytest.mark.parametrize("seconds", [VALID_FOR_S + 2, -60])
def test_a_confirmation_is_valid_for_a_day(
    confirmations: Confirmations, file: Path, clock: Clock, seconds: float
) -> None:
    clock.now += seconds
    assert "valid for 24 hours" in refusal(confirmations)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"signature": 1}', "\0", '{"a": ' * 50, "[" * 100_000])
def test_a_damaged_confirmation_is_refused(confirmations: Confirmations, file: Path, text: str) -> None:
    file.write_text(text)
    assert refusal(confirmations).startswith("the confirmation in code.removals.json does not count: ")


def test_what_the_key_has_signed_for_another_purpose_is_refused(confirmations: Confirmations, file: Path) -> None:
    file.write_text(json.dumps(signer_of(confirmations.data_dir).signed({"domain": "code", "gone": True})))
    assert "does not count" in refusal(confirmations)


def test_only_this_user_can_read_the_key(confirmations: Confirmations, file: Path) -> None:
    key = confirmations.data_dir / "keys" / "signing.pem"
    modes = [path.stat().st_mode & 0o777 for path in (confirmations.folder, key, file)]
    assert modes == [0o700, 0o600, 0o600]
    key.chmod(0o644)
    assert "other users can read this key" in refusal(confirmations)
    with pytest.raises(ConfigError, match="other users can read this key"):
        confirmations.issue(*REMOVALS, STATE)


def test_what_is_withdrawn_confirms_nothing(confirmations: Confirmations, file: Path) -> None:
    confirmations.withdraw(*REMOVALS)
    assert not confirmations.redeem(*REMOVALS, STATE)
