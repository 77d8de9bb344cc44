"""The record of what a parser reads from bytes, before the source adds where they came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from nornweave.core.types import NO_METADATA, Metadata, Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The part of a ``Document`` that depends only on its bytes. The fields have the same meaning as in ``Document``.

    The ``sections`` tile the ``text``. For formats without pages ``page_starts`` is empty.
    """

    text: str
    sections: tuple[Section, ...] = ()
    page_starts: tuple[int, ...] = ()
    title: str | None = None
    updated_at: datetime | None = None
    url: str | None = None
    metadata: Metadata = field(default_factory=lambda: NO_METADATA)
