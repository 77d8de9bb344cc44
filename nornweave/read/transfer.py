"""Read documents from the JSON that another process sends; ``sandbox.frames`` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from nornweave.core.types import Document, Domain, Entry, Message, Metadata, Section, Span, freeze

Fields: TypeAlias = Mapping[str, Any]


def entry_from(sent: Fields) -> Entry:
    """Read an entry."""
    return Entry(**{**sent, "updated_at": _moment(sent["updated_at"]), "metadata": freeze(sent["metadata"])})


def document_from(sent: Fields) -> Document:
    """Read a document."""
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
    """Read metadata; lists become tuples."""
    return freeze({key: tuple(value) if isinstance(value, list) else value for key, value in sent.items()})


def _message(sent: Fields) -> Message:
    timestamp = _moment(sent["timestamp"])
    return Message(**{**sent, "span": Span(**sent["span"]), "timestamp": timestamp, "lead": tuple(sent["lead"])})


def _section(sent: Fields) -> Section:
    return Section(**{**sent, "span": Span(**sent["span"]), "metadata": metadata_from(sent["metadata"])})


def _moment(sent: str | None) -> datetime | None:
    return datetime.fromisoformat(sent) if sent is not None else None
