"""``nornweave serve --from``: follow a publisher's object store and serve what it publishes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nornweave.carry.follower import POLL_S, Follower, follow_in_background
from nornweave.carry.parts import ObjectStore
from nornweave.carry.publishing import OWN_OF_FUSION
from nornweave.cli.options import messages
from nornweave.config import PublishSettings, Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import ConfigError, DomainBusyError, PublicationError
from nornweave.core.files.lock import WriterLock
from nornweave.core.files.writing import keep_private, user_cache

# Longer than it takes to learn that nothing changed, or to copy small files.
FIRST_LOOK_S = 5.0


@contextmanager
def replica(url: str, data_dir: Path | None, config: Path) -> Iterator[Follower]:
    """Follow a store while in the context; yield the follower, which has the settings to serve with.

    Args:
        data_dir: the folder for the copy; by default one below the user's cache folder.
        config: this machine's configuration, if there is one. Only its `access`, its `synthesis_model` with the
            fallback, and its connection to the store are used.

    Raises:
        ConfigError: the address is not valid, or another process uses the folder.
        PublicationError: the client library of the store is not installed, or lacks a part that the address needs.
    """
    local = load_settings(config) if config.exists() else None
    store = ObjectStore(_store_settings(url, local))
    keys = local.publish.public_keys if local and local.publish else ()
    folder = data_dir or default_folder(store.url)
    keep_private(folder, folder / "nornweave.yaml")
    try:
        with WriterLock(folder / "replica.lock", purpose="replica"):
            follower = Follower(store, folder, _own(local), keys=keys)
            _wait(follower.prepare, store.url)
            end = follow_in_background(follower)
            try:
                if not follower.has_looked.wait(FIRST_LOOK_S):
                    _say(f"{store.url}: what is published there is still on its way; what is here answers meanwhile")
                yield follower
            finally:
                end()
    except DomainBusyError as error:
        raise ConfigError(
            f"{folder}: another replica uses it; name another folder with --data-dir ({error})"
        ) from error


def default_folder(url: str) -> Path:
    """Return the folder for the copy of a store, one per user and machine."""
    return user_cache("replicas") / hashlib.sha256(url.encode()).hexdigest()[:16]


def _store_settings(url: str, local: Settings | None) -> PublishSettings:
    stated = local.publish.model_dump() if local and local.publish else {}
    try:
        return PublishSettings.model_validate({**stated, "url": url})
    except ValidationError as error:
        problem = error.errors(include_input=False)[0]
        raise ConfigError(f"--from: {problem['msg'].removeprefix('Value error, ')}") from error


def _own(local: Settings | None) -> Mapping[str, Any]:
    """Return the replica's own settings, ``access`` and a part of ``fusion``; empty without a configuration."""
    if local is None:
        return {}
    fusion = local.fusion.model_dump(mode="json", exclude_unset=True, include=OWN_OF_FUSION)
    access = local.access.model_dump(mode="json", exclude_none=True) if local.access else None
    return {"fusion": fusion, "access": access}


def _wait(prepare: Callable[[], bool], url: str) -> None:
    """Wait until the publisher's settings can be read; print each new reason for waiting once."""
    said = None
    while True:
        try:
            if prepare():
                return
            reason = f"{url}: nothing is published there yet"
        except PublicationError as error:
            reason = str(error)
        if reason != said:
            _say(f"{reason}; waiting")
            said = reason
        time.sleep(POLL_S)


def _say(text: str) -> None:
    messages.print(text, soft_wrap=True)
