"""A source of files of Stack Exchange JSON."""

from __future__ import annotations

from dataclasses import dataclass, field

from nornweave.connect.files.source import FilesSource
from nornweave.connect.stackexchange.document import stackexchange_document
from nornweave.core.types import Document, Entry
from nornweave.read.isolated import parse_apart


@dataclass(frozen=True, slots=True)
class StackExchangeSource(FilesSource):
    """A folder, or one file, of Stack Exchange JSON."""

    include: tuple[str, ...] = field(default=("**/*.json",), kw_only=True)

    def parse(self, entry: Entry, raw: bytes) -> Document:
        is_dated = "updated_at" in entry.metadata
        return parse_apart(stackexchange_document, self.id, entry, raw, domain=self.domain, is_dated=is_dated)
