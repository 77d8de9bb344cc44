"""``nornweave push``: put files into the inbox of a domain."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

from nornweave.cli.options import DOMAIN, JsonOption, messages, output, settings_of
from nornweave.core.errors import ConfigError, NornWeaveError
from nornweave.core.text.terminal import print_json
from nornweave.core.types import Domain, JsonValue, freeze

if TYPE_CHECKING:
    from nornweave.connect.inbox.deposits import InboxDocument

Receipts = list[dict[str, JsonValue]]


def push(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Files of formats that a sync reads.")],
    domain: Annotated[Domain, typer.Option("--domain", metavar="D", help="Whose inbox.", **DOMAIN)],
    path: Annotated[str, typer.Option("--path", metavar="PREFIX", help="Folder to put before every name.")] = "",
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="KEY=VALUE", help="For every file; may be repeated. JSON, or else text."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Hand in files. The next sync of the domain indexes them. A file that is handed in again is replaced."""
    documents = _documents(files, path, _metadata(metadata or []))
    receipts = _put(context, domain, documents)
    rejected = [each for each in receipts if each["status"] == "REJECTED" and each["reason"] != "duplicate"]
    if as_json:
        print_json({"domain": domain.value, "documents": receipts})
    else:
        for each in receipts:
            output.print(
                f"{each['status']:<9} {each['source_path']}" + (f": {each['reason']}" if each["reason"] else "")
            )
    for each in rejected:
        messages.print(f"{each['source_path']}: {each['reason']}", style="red", soft_wrap=True)
    sys.exit(1 if rejected else 0)


def _documents(files: Sequence[Path], prefix: str, metadata: Mapping[str, JsonValue]) -> list[InboxDocument]:
    from nornweave.connect.inbox.deposits import InboxDocument

    named: dict[str, Path] = {}
    for file in files:
        if not file.is_file():
            raise ConfigError(f"{file}: is {'a folder' if file.is_dir() else 'not there'}; push takes files")
        place = _place(file, prefix)
        if place in named:
            raise ConfigError(f"{file}: would take the place of {named[place]}, {place!r}; push them one by one")
        named[place] = file
    return [
        InboxDocument(source_path=place, content=_read(file), metadata=freeze(metadata))
        for place, file in named.items()
    ]


def _place(file: Path, prefix: str) -> str:
    """Return the path of a file in the inbox, below the folder ``prefix``.

    ``a/b.md`` stays ``a/b.md``. Only the name of an absolute path, or of a path with ``..``, is used.
    """
    given = PurePosixPath(file.as_posix())
    name = given.name if given.is_absolute() or ".." in given.parts else str(given)
    folder = prefix.strip("/")
    return f"{folder}/{name}" if folder else name


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise NornWeaveError(f"{file}: cannot be read: {error.strerror}") from error


def _metadata(options: Sequence[str]) -> dict[str, JsonValue]:
    values: dict[str, JsonValue] = {}
    for option in options:
        key, equals, text = option.partition("=")
        if not (equals and key.strip()):
            raise ConfigError(f"--metadata {option!r}: expected KEY=VALUE, such as environment=prod")
        try:
            values[key.strip()] = json.loads(text)
        except ValueError:
            values[key.strip()] = text
    return values


def _put(context: typer.Context, domain: Domain, documents: Sequence[InboxDocument]) -> Receipts:
    from nornweave.connect.inbox.deposits import deposit

    receipts = deposit(settings_of(context).inbox(domain), documents)
    return [{"source_path": each.source_path, "status": each.status.value, "reason": each.reason} for each in receipts]
