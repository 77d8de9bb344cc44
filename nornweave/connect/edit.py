"""Add a source to ``nornweave.yaml`` or remove one: read with the change as everything reads it, then replaced."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from typing import Any

from nornweave.config import Settings
from nornweave.config.edit_sources import with_source, without_source
from nornweave.config.sources import SourceSettings
from nornweave.connect.connectors import load_settings, open_source
from nornweave.connect.protocol import Checked
from nornweave.core.errors import ConfigError
from nornweave.core.files.atomic_write import write_whole
from nornweave.core.types import Listing, present


def add_source(file: Path, keys: Mapping[str, Any]) -> Settings:
    """Add a source.

    Returns:
        What the file says now.

    Raises:
        ConfigError: a key of the source is wrong, its id is taken or its path is missing; nothing was changed.
    """
    return _replaced(file, lambda text: with_source(text, keys, f"added {present():%Y-%m-%d}"))


def preview_source(file: Path, keys: Mapping[str, Any]) -> Listing | None:
    """List a source that is not there yet, and add nothing.

    Returns:
        What it names; ``None`` for one elsewhere, which was only asked whether it can be read.

    Raises:
        ConfigError: see ``add_source``.
        NornWeaveError: it cannot be read.
    """
    settings = _replaced(file, lambda text: with_source(text, keys, ""), keeps=False)
    return listing_of(next(source for source in settings.sources if source.id == keys.get("id")), settings.data_dir)


def listing_of(source: SourceSettings, data_dir: Path) -> Listing | None:
    """Open a source and list it; return ``None`` for one elsewhere, which is asked for as little as possible.

    Raises:
        NornWeaveError: it cannot be read.
    """
    opened: Any = open_source(source, data_dir)
    with closing(opened) if hasattr(opened, "close") else nullcontext():
        if isinstance(opened, Checked):
            opened.check()
            return None
        listing: Listing = opened.list()
        return listing


def remove_source(file: Path, source_id: str) -> Settings:
    """Remove a source; its documents go with the next sync of its domain, once a person confirmed that.

    Raises:
        ConfigError: no source has this id; nothing was changed.
    """
    return _replaced(file, lambda text: without_source(text, source_id))


def _replaced(file: Path, change: Callable[[str], str], *, keeps: bool = True) -> Settings:
    """Write a changed file beside the old one, read it, and put it in the old one's place if it is kept."""
    file = file.resolve()
    draft = file.with_name(f".{file.name}.draft-{os.getpid()}")
    with ExitStack() as stack:
        stack.callback(draft.unlink, missing_ok=True)
        try:
            mode, text = stat.S_IMODE(file.stat().st_mode), file.read_text(encoding="utf-8")
        except FileNotFoundError:
            mode, text = 0o644, ""
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: cannot be read ({error})") from error
        before = {source.id for source in load_settings(file).sources} if text.strip() else set()
        try:
            write_whole(draft, change(text), mode)
            settings = load_settings(draft)
            for source in settings.sources:
                if source.id not in before:
                    _check(source, [each for each in settings.sources if each.id in before])
            if not keeps:
                return settings
            draft.replace(file)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(draft), str(file))) from error
    return load_settings(file)


def _check(added: SourceSettings, others: Sequence[SourceSettings]) -> None:
    """Refuse a path that is missing, and a place that is read for the domain already."""
    if added.path is not None and not added.path.exists():
        raise ConfigError(f"sources[{added.id}]: path {added.path} does not exist")
    for other in others:
        if added.model_copy(update={"id": other.id}) == other:
            raise ConfigError(f"sources[{added.id}]: is there already as {other.id!r}")
