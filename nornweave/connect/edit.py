"""Add a source to ``nornweave.yaml`` or remove one. Comments and layout stay.

The file is read with the change as everything reads it, then replaced. Comments and layout of everything else stay.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from typing import Any

import yaml

from nornweave.config import Settings
from nornweave.config.sources import SourceSettings
from nornweave.connect.connectors import load_settings, open_source
from nornweave.connect.protocol import Checked
from nornweave.core.errors import ConfigError
from nornweave.core.files.lock import hold_lock
from nornweave.core.files.paths import OwnFiles
from nornweave.core.files.writing import write_whole
from nornweave.core.text.terminal import lines_of
from nornweave.core.types import Listing, present

_FILES = frozenset({"path", "include", "only", "exclude"})
OFFERED: Mapping[str, frozenset[str]] = {
    "files": _FILES,
    "git": _FILES | {"url", "ref"},
    "web": frozenset({"url", "prefix", "include", "only", "exclude"}),
    "feed": frozenset({"path", "url"}),
    "slack": _FILES,
    "github": _FILES,
    "transcripts": _FILES,
    "messages": _FILES,
    "stackexchange": _FILES,
}
"""The keys that each kind of source takes over HTTP, on the page and from ``init --add``, beside those of every source.

What is not here (secrets, and where they are sent) is for a person with an editor.
"""
_BY_A_PERSON = "edit the file by hand"
_BY_HAND = "sources: this layout of the file cannot be edited (one source a line can); edit it by hand"


def add_source(file: Path, keys: Mapping[str, Any], *, over_http: bool = False) -> Settings:
    """Add a source to the configuration file if the source can be opened.

    A source that a client sends over HTTP is also listed first, as a test.

    Returns:
        The new settings.

    Raises:
        ConfigError: a key of the source is wrong or not offered, its id is taken or its path is missing.
        NornWeaveError: the source cannot be read. No error changes the file.
    """
    if over_http:
        preview_source(file, keys)
        keys = _with_place(file, keys)
    offered, remark = _check_offered(keys, over_http=over_http), f"added {present():%Y-%m-%d}"
    return _change_file(file, lambda text: with_source(text, offered, remark), over_http=over_http)


def _with_place(file: Path, keys: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the keys of a source with its ``path`` made relative to the folder of the configuration file."""
    if not keys.get("path"):
        return keys
    folder = file.resolve().parent
    place = (folder / Path(keys["path"]).expanduser()).resolve()
    return {**keys, "path": os.path.relpath(place, folder)}


def preview_source(file: Path, keys: Mapping[str, Any]) -> Listing | None:
    """List a new source from HTTP without adding it.

    Returns:
        The listing of the source. ``None`` for a remote source, which is only checked.

    Raises:
        ConfigError: a key of the source is wrong or not offered, its id is taken or its path is missing.
        NornWeaveError: the source cannot be read.
    """
    settings = _apply_change(
        file, lambda text: with_source(text, _check_offered(keys, over_http=True), ""), over_http=True
    )
    return listing_of(next(source for source in settings.sources if source.id == keys.get("id")), settings.own_files)


def listing_of(source: SourceSettings, own: OwnFiles) -> Listing | None:
    """Open a source and list it. Return ``None`` for a remote source, which is only checked.

    Raises:
        NornWeaveError: the source cannot be read.
    """
    opened: Any = open_source(source, own)
    with closing(opened) if hasattr(opened, "close") else nullcontext():
        if isinstance(opened, Checked):
            opened.check()
            return None
        listing: Listing = opened.list()
        return listing


def remove_source(file: Path, source_id: str) -> Settings:
    """Remove a source. The next sync removes its documents after a person's confirmation.

    Raises:
        ConfigError: no source has this id; nothing was changed.
    """
    return _change_file(file, lambda text: without_source(text, source_id))


def _change_file(file: Path, change: Callable[[str], str], *, over_http: bool = False) -> Settings:
    """Change the file under a lock, so that no simultaneous change is lost. Return the new settings."""
    file = file.resolve()
    try:
        with hold_lock(file.with_name(f".{file.name}.lock")):
            _apply_change(file, change, over_http=over_http, keeps=True)
            return load_settings(file)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written ({error})") from error


def _apply_change(file: Path, change: Callable[[str], str], *, over_http: bool, keeps: bool = False) -> Settings:
    """Write the change to a draft, check the draft, and return its settings.

    The draft replaces the file only if ``keeps`` is set.
    """
    file = file.resolve()
    draft = file.with_name(f".{file.name}.draft-{secrets.token_hex(8)}")
    with ExitStack() as stack:
        stack.callback(draft.unlink, missing_ok=True)
        try:
            mode, text = stat.S_IMODE(file.stat().st_mode), file.read_text(encoding="utf-8")
        except FileNotFoundError:
            mode, text = 0o644, ""
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: cannot be read ({error})") from error
        before = load_settings(file).sources if text.strip() else ()
        try:
            changed = change(text)
            draft.touch(mode=0o600)
            draft.write_text(changed, encoding="utf-8")
            settings = load_settings(draft).model_copy(update={"file": file})
            ids = {source.id for source in before}
            for source in settings.sources:
                if source.id not in ids:
                    _check(source, before, settings, over_http=over_http)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(draft), str(file))) from error
        except (OSError, RuntimeError) as error:  # a name that is too long, links in a circle
            raise ConfigError(f"{file}: a path of the source cannot be looked at ({error!s:.200})") from error
        if keeps:
            write_whole(file, changed, mode)
        return settings


def _check(added: SourceSettings, others: Sequence[SourceSettings], settings: Settings, *, over_http: bool) -> None:
    """Refuse a new source that cannot be opened, has no path, or is already read for its domain."""
    if over_http:  # first: reveal nothing about other places, not even whether they exist
        url, folder = getattr(added, "url", None), settings.file.parent.resolve()
        place = added.path.resolve() if added.path else folder
        if not place.is_relative_to(folder) or any(part.startswith(".") for part in place.relative_to(folder).parts):
            raise ConfigError(f"path: is hidden, or not below the folder of the configuration; {_BY_A_PERSON}")
        if url and not url.startswith("https://"):
            raise ConfigError(f"url: {url!r} does not begin with https://; {_BY_A_PERSON}")
    which = f"sources[{added.id}]"
    if added.path is not None and not added.path.exists():
        raise ConfigError(f"{which}: path {added.path} does not exist")
    for other in others:
        if added.model_copy(update={"id": other.id}) == other:
            raise ConfigError(f"{which}: is there already as {other.id!r}")
    open_source(added, settings.own_files)


def _check_offered(keys: Mapping[str, Any], *, over_http: bool) -> dict[str, Any]:
    """Check the keys. Return them as they are written to the file. ``over_http`` adds ``public_addresses_only``.

    Raises:
        ConfigError: a key is not in ``OFFERED``.
    """
    kind = str(keys.get("type"))
    if kind not in OFFERED:
        raise ConfigError(f"type: {kind!r}: expected {', '.join(OFFERED)}; {_BY_A_PERSON}")
    if others := sorted(keys.keys() - OFFERED[kind] - {"id", "domain", "type", "access"}):
        raise ConfigError(f"{others[0]}: is not offered here for type {kind!r}; {_BY_A_PERSON}")
    if not keys.get("path", True):
        raise ConfigError("path: is empty; '.' is the folder of the configuration")
    return {**keys, "public_addresses_only": True} if over_http and "url" in keys else dict(keys)


def with_source(text: str, keys: Mapping[str, Any], remark: str) -> str:
    """Return the text of the configuration with one more source. The source is on one line, followed by a remark.

    Raises:
        ConfigError: the layout of the text cannot be edited by a program.
    """
    node, line = _sources_node(text), _flow(keys)
    if node is None:
        edited = f"{text.rstrip()}\nsources:\n  - {line}   # {remark}\n" if text.strip() else f"sources:\n  - {line}\n"
    elif node.flow_style:
        if node.value or text.lstrip().startswith("{"):
            raise ConfigError(_BY_HAND)
        edited = f"{text[: node.start_mark.index].rstrip()}\n  - {line}   # {remark}{text[node.end_mark.index :]}"
    else:
        lines = text.splitlines(keepends=True)
        after = _last_line(text, node.value[-1]) + 1
        ends = "" if lines[after - 1].endswith("\n") else "\n"
        added = f"{ends}{' ' * node.start_mark.column}- {line}   # {remark}\n"
        edited = "".join([*lines[:after], added, *lines[after:]])
    return _check_edited(text, edited, [*_sources(text), dict(keys)])


def without_source(text: str, source_id: str) -> str:
    """Return the text of the configuration without a source.

    Raises:
        ConfigError: no source has this id, or the layout of the text cannot be edited by a program.
    """
    sources, node = _sources(text), _sources_node(text)
    places = [
        place for place, source in enumerate(sources) if isinstance(source, dict) and source.get("id") == source_id
    ]
    if not places or node is None:
        raise ConfigError(f"sources: no source has the id {source_id!r}")
    place = places[0]
    item = node.value[place]
    left = [*sources[:place], *sources[place + 1 :]]
    if node.flow_style:
        raise ConfigError(_BY_HAND)
    if not left:
        start = text.rindex(":", 0, node.start_mark.index) + 1
        end = sum(len(line) for line in text.splitlines(keepends=True)[: _last_line(text, item) + 1]) - 1
        return _check_edited(text, f"{text[:start]} []{text[end:]}", left)
    lines = text.splitlines(keepends=True)
    edited = "".join([*lines[: item.start_mark.line], *lines[_last_line(text, item) + 1 :]])
    return _check_edited(text, edited, left)


def _flow(keys: Mapping[str, Any]) -> str:
    return yaml.safe_dump(
        dict(keys), default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True
    ).strip()


def _sources_node(text: str) -> yaml.SequenceNode | None:
    """Return the YAML node of the sources; ``None`` if the text has no key ``sources``."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    node = next((value for key, value in pairs if key.value == "sources"), None)
    if node is not None and not isinstance(node, yaml.SequenceNode):
        raise ConfigError("sources: is not a list; write `sources: []`")
    return node


def _sources(text: str) -> list[Any]:
    raw = yaml.safe_load(text) or {}
    return list(raw.get("sources") or []) if isinstance(raw, dict) else []


def _last_line(text: str, node: yaml.Node) -> int:
    """Return the number of a node's last line, from 0. Comments and blank lines below the node do not count."""
    lines = lines_of(text)
    last: int = node.end_mark.line
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and text[node.end_mark.index :].strip():
        last -= 1
    while last > node.start_mark.line and (not lines[last].strip() or lines[last].lstrip().startswith("#")):
        last -= 1
    return last


def _check_edited(text: str, edited: str, sources: list[Any]) -> str:
    """Return the edited text. Refuse it if anything but the sources changed, or if the sources are not as intended."""
    try:
        before, after = yaml.safe_load(text) or {}, yaml.safe_load(edited)
    except yaml.YAMLError as error:
        raise ConfigError(_BY_HAND) from error
    if after != {**before, "sources": sources}:
        raise ConfigError(_BY_HAND)
    return edited
