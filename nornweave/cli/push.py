"""``nornweave push``: put files into the inbox of a domain, on this machine or through a running service."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nornweave.cli.options import DOMAIN, JsonOption, messages, output, settings_of
from nornweave.core.errors import ConfigError, NornWeaveError
from nornweave.core.text.terminal import print_json
from nornweave.core.types import Domain, JsonValue, freeze

if TYPE_CHECKING:
    from nornweave.connect.inbox.deposits import InboxDocument

TOKENS = ("NORNWEAVE_SERVICE_TOKEN", "NORNWEAVE_TOKEN")
# The service takes 32 MiB at a time; a part of that is left for what stands between the files.
BATCH_BYTES, BATCH_FILES = 24 << 20, 200
TIMEOUT_S = 120.0

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
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A running service, e.g. http://127.0.0.1:8082; its token is read from NORNWEAVE_SERVICE_TOKEN or "
            "NORNWEAVE_TOKEN. Default: the inbox of the configuration.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Hand files in; the next sync of the domain indexes them, and handing one in again replaces it."""
    documents = _documents(files, path, _metadata(metadata or []))
    receipts = _send(url, domain, documents) if url else _put(context, domain, documents)
    rejected = [each for each in receipts if each["status"] == "REJECTED" and each["reason"] != "duplicate"]
    if as_json:
        print_json({"domain": domain.value, "url": url, "documents": receipts})
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
    """Return where a file goes: by its path as it was given, or by its name alone if that leads elsewhere."""
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


def _send(url: str, domain: Domain, documents: Sequence[InboxDocument]) -> Receipts:
    import httpx

    token = next((value for name in TOKENS if (value := os.environ.get(name))), None)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    receipts: Receipts = []
    try:
        with httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT_S) as client:
            for batch in _batches(documents):
                answer = client.post(f"/agents/{domain.value}/ingest", files=_parts(batch), data=_fields(batch[0]))
                receipts += _receipts(url, answer)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NornWeaveError(f"{url}: cannot be reached: {error or type(error).__name__}; is it serving?") from error
    return receipts


def _batches(documents: Sequence[InboxDocument]) -> Iterator[list[InboxDocument]]:
    batch: list[InboxDocument] = []
    size = 0
    for document in documents:
        if batch and (size + len(document.content) > BATCH_BYTES or len(batch) == BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += len(document.content)
    if batch:
        yield batch


def _parts(batch: Sequence[InboxDocument]) -> list[tuple[str, tuple[str, Any]]]:
    return [("file", (document.source_path, document.content)) for document in batch]


def _fields(document: InboxDocument) -> dict[str, str]:
    return {"metadata": json.dumps(dict(document.metadata))} if document.metadata else {}


def _receipts(url: str, answer: Any) -> Receipts:
    """Return what became of the files.

    Raises:
        NornWeaveError: the service refused them all; says what it said.
    """
    try:
        document = answer.json()
    except ValueError:
        document = None
    if answer.status_code == 202 and isinstance(document, dict):
        return list(document["documents"])
    detail = document.get("detail") if isinstance(document, dict) else None
    retry = answer.headers.get("retry-after")
    again = f"; come back in {retry} s" if retry else ""
    raise NornWeaveError(f"{url} answers {answer.status_code}: {detail or 'not what a service answers'}{again}")
