"""Confirmations that a person gave at the command line: signed files, each for one domain and state, used once.

A run's configuration confirms nothing: whoever reaches the Dagster UI can write one. A run that is held back looks for
a confirmation here instead, and uses it up. Only a process that can read the key in ``data_dir`` can make one.

::

    data_dir/confirmations/
      code.removals.json  waits for the run that is held back by it
      used/               confirmations that were used; none counts twice
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from nornweave.core.errors import ConfirmationError, NornWeaveError
from nornweave.core.files.writing import write_whole
from nornweave.core.signatures import check_signed, own_keys, read_signed, signer_of
from nornweave.core.types import Domain

VALID_FOR_S = 24 * 3600.0
"""A first sync of a large corpus takes hours before its quality is known."""


class ConfirmationSubject(StrEnum):
    """What can be confirmed."""

    REMOVALS = "removals"
    """The removals that the mass-delete brake holds; the state names them all."""
    QUALITY = "quality"
    """That the next generation may answer worse; the state is the generation that it takes the place of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmations:
    """The confirmations of one data directory.

    Attributes:
        data_dir: the folder of the confirmations and of the key that signs them.
        clock: returns the seconds since 1970.
    """

    data_dir: Path
    clock: Callable[[], float] = time.time

    @property
    def folder(self) -> Path:
        """The folder of confirmations. It is created with the first confirmation."""
        return self.data_dir / "confirmations"

    def issue(self, domain: Domain, subject: ConfirmationSubject, state: str) -> None:
        """Confirm a state. An older confirmation of the same domain and subject is replaced.

        Raises:
            ConfirmationError: the confirmation cannot be written.
            ConfigError: the key cannot be used.
        """
        confirmation = {
            "domain": domain.value,
            "subject": subject.value,
            "state": state,
            "issued_at": int(self.clock()),
            "nonce": secrets.token_hex(16),
        }
        try:
            (self.folder / "used").mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.chmod(0o700)
            write_whole(self._file(domain, subject), json.dumps(signer_of(self.data_dir).signed(confirmation)))
        except OSError as error:
            raise ConfirmationError(f"{self.folder}: nothing can be confirmed there: {error}") from error

    def redeem(self, domain: Domain, subject: ConfirmationSubject, state: str) -> bool:
        """Use up the confirmation of a state. Return whether there was one.

        Raises:
            ConfirmationError: there is a confirmation, but it is not valid for this state. It is deleted.
        """
        file = self._file(domain, subject)
        try:
            confirmation = self._read(file)
            if confirmation is None:
                return False
            used = self._check(confirmation, domain, subject, state)
            file.rename(used)
        except (NornWeaveError, OSError, ValueError, KeyError, TypeError) as error:
            file.unlink(missing_ok=True)
            raise ConfirmationError(
                f"the confirmation in {file.name} does not count: {error}; confirm again"
            ) from error
        self._forget_expired()
        return True

    def withdraw(self, domain: Domain, subject: ConfirmationSubject) -> None:
        """Delete a confirmation that was not used."""
        self._file(domain, subject).unlink(missing_ok=True)

    def _check(self, confirmation: Mapping[str, Any], domain: Domain, subject: ConfirmationSubject, state: str) -> Path:
        """Check a confirmation. Return the path to which a used confirmation is moved.

        Raises:
            SignatureError: the confirmation is forged.
            ConfirmationError: it was used before, is too old, or is about another domain, subject or state.
        """
        check_signed(confirmation, own_keys(self.data_dir))
        issued = datetime.fromtimestamp(confirmation["issued_at"], UTC)
        if not 0 <= self.clock() - confirmation["issued_at"] + 1 <= VALID_FOR_S:
            raise ConfirmationError(f"it was made at {issued:%Y-%m-%d %H:%M} UTC and is valid for 24 hours")
        if (confirmation["domain"], confirmation["subject"]) != (domain.value, subject.value):
            raise ConfirmationError(f"it is about {confirmation['subject']} in {confirmation['domain']}")
        used: Path = self.folder / "used" / confirmation["nonce"]
        if used.exists():
            raise ConfirmationError(f"it was made at {issued:%Y-%m-%d %H:%M} UTC and has been used already")
        if confirmation["state"] != state:
            raise ConfirmationError(f"what is held has changed since it was made at {issued:%Y-%m-%d %H:%M} UTC")
        return used

    def _read(self, file: Path) -> Mapping[str, Any] | None:
        try:
            return read_signed(file.read_bytes())
        except FileNotFoundError:
            return None

    def _file(self, domain: Domain, subject: ConfirmationSubject) -> Path:
        return self.folder / f"{domain.value}.{subject.value}.json"

    def _forget_expired(self) -> None:
        for file in (self.folder / "used").iterdir():
            if file.stat().st_mtime < self.clock() - 2 * VALID_FOR_S:
                file.unlink(missing_ok=True)
