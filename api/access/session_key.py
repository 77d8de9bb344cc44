"""The key that sessions are signed with where several tokens open them: made once, shared by all serving processes."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from nornweave.core.errors import ConfigError

NAME = "session.key"


def session_key(data_dir: Path) -> str:
    """Return the key, making it where there is none; of several processes that make one at once the first one's counts.

    Raises:
        ConfigError: it can be neither read nor written.
    """
    file = data_dir / NAME
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            _make(file)
        key = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: the key of sessions cannot be read or written: {error}") from error
    if len(key) < 32:
        raise ConfigError(f"{file}: holds no key; remove it: another one is made, and people log in anew")
    return key


def _make(file: Path) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(32))
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            os.link(name, file)
    finally:
        Path(name).unlink(missing_ok=True)
