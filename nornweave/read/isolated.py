"""Parse a document in a separate process with limits of time and memory.

The process receives and sends JSON, which ``sandbox.frames`` writes; its output is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeAlias, cast

from nornweave.core.sandbox import run_apart
from nornweave.core.sandbox.frames import address_of, function_at
from nornweave.core.types import Document, Domain, Entry, JsonValue, Message, Metadata, Section, SourceId, Span, freeze
from nornweave.read.formats.reader import CONVERTED
from nornweave.read.parsed import CONVERTED_SECONDS, pdf_seconds, seconds_for

Options = ParamSpec("Options")
Fields: TypeAlias = Mapping[str, Any]


def parse_apart(
    parser: Callable[Concatenate[SourceId, Entry, bytes, Options], Document],
    source_id: SourceId,
    entry: Entry,
    raw: bytes,
    *_: Options.args,
    **options: Options.kwargs,
) -> Document:
    """Parse a document in a process with limits of time and memory.

    Args:
        parser: a function at the top level of a module.
        options: further arguments of the parser. Each of them must be a JSON value, except ``domain``.

    Raises:
        DocumentError: the parser raised it. It is a ``ReaderLostError`` if the parser exceeded its limits.
    """
    cpu_s = _seconds(entry.path.lower(), len(raw))
    values = {"parser": address_of(parser), "source_id": source_id, "entry": entry, "options": options}
    return document_from(cast(Fields, run_apart(parse_document, values, raw, cpu_s=cpu_s, uses=(parser,))))


def parse_document(values: Mapping[str, JsonValue], raw: bytes) -> Document:
    """Call the parser that ``parse_apart`` named. This function runs in the sandbox's process."""
    parser = cast(Callable[..., Document], function_at(str(values["parser"])))
    options = dict(cast(Fields, values["options"]))
    if "domain" in options:
        options["domain"] = Domain(options["domain"])
    return parser(SourceId(str(values["source_id"])), entry_from(cast(Fields, values["entry"])), raw, **options)


def _seconds(path: str, size: int) -> float:
    if path.endswith(tuple(CONVERTED)):
        return CONVERTED_SECONDS
    return pdf_seconds(size) if path.endswith(".pdf") else seconds_for(size)


def entry_from(sent: Fields) -> Entry:
    """Return the entry that was sent to the sandbox's process as JSON."""
    return Entry(**{**sent, "updated_at": _moment(sent["updated_at"]), "metadata": freeze(sent["metadata"])})


def document_from(sent: Fields) -> Document:
    """Return the document that the sandbox's process sent as JSON."""
    return Document(
        **{
            **sent,
            "domain": Domain(sent["domain"]),
            "updated_at": _moment(sent["updated_at"]),
            "metadata": metadata_from(sent["metadata"]),
            "messages": tuple(map(_message, sent["messages"])),
            "sections": tuple(map(_section, sent["sections"])),
            "page_starts": tuple(sent["page_starts"]),
        }
    )


def metadata_from(sent: Fields) -> Metadata:
    """Return metadata that was sent as JSON. Lists become tuples."""
    return freeze({key: tuple(value) if isinstance(value, list) else value for key, value in sent.items()})


def _message(sent: Fields) -> Message:
    timestamp = _moment(sent["timestamp"])
    return Message(**{**sent, "span": Span(**sent["span"]), "timestamp": timestamp, "lead": tuple(sent["lead"])})


def _section(sent: Fields) -> Section:
    return Section(**{**sent, "span": Span(**sent["span"]), "metadata": metadata_from(sent["metadata"])})


def _moment(sent: str | None) -> datetime | None:
    return datetime.fromisoformat(sent) if sent is not None else None
