"""Filter the chunks of one generation file, and count the values and documents that may be seen."""

from __future__ import annotations

from collections.abc import Sequence

from nornweave.index.conditions import Condition, select_chunks
from nornweave.index.generation_file import GenerationFile
from nornweave.index.port import Mask
from nornweave.index.served_documents import ServedDocument, documents_after
from nornweave.index.value_counts import (
    FieldValues,
    UnreadRow,
    UnreadValues,
    ValueCounts,
    count_values,
    field_values,
    unread_rows,
    unread_values,
)
from nornweave.index.visibility import Visible

# Filters come in streaks; a mask is a byte a chunk.
_REMEMBERED_MASKS = 64


class FileCounts:
    """The filters and values of one file; every method may be called from any thread."""

    def __init__(self, file: GenerationFile, masks: dict[tuple[Condition, ...], Mask], visible: Visible | None = None):
        """Store the parameters.

        Args:
            file: open.
            masks: of the last filters; all viewers share them.
            visible: what may be seen; ``None`` for everything.
        """
        self._file = file
        self._masks = masks
        self._visible = visible

    def within(self, conditions: Sequence[Condition]) -> Mask:
        key = tuple(conditions)
        mask = self._masks.get(key)
        if mask is None:
            with self._file.reading() as cursor:
                mask = select_chunks(cursor, key, self._file.size)
            if len(self._masks) >= _REMEMBERED_MASKS:
                self._masks.clear()
            self._masks[key] = mask
        return mask if self._visible is None else mask & self._visible.chunks

    def value_counts(self, field: str, type_: str, limit: int, within: Mask | None = None) -> ValueCounts:
        return count_values(
            self.field_values(field, type_), type_, self._file.documents, limit, self._within_seen(within)
        )

    def field_values(self, field: str, type_: str) -> FieldValues:
        """Return the values of a field with the chunks that have them, also those that may not be seen."""
        with self._file.reading() as cursor:
            return field_values(cursor, field, type_)

    def unread_values(self, field: str, limit: int, within: Mask | None = None) -> UnreadValues:
        return unread_values(self.unread_rows(field), self._file.documents, limit, self._within_seen(within))

    def unread_rows(self, field: str) -> list[UnreadRow]:
        """Return values that are not of the declared type, of all documents, also those that may not be seen."""
        with self._file.reading() as cursor:
            return unread_rows(cursor, field)

    def served_documents(self, after: tuple[str, str], limit: int, within: Mask | None = None) -> list[ServedDocument]:
        with self._file.reading() as cursor:
            return documents_after(cursor, self._file.documents, after, limit, self._within_seen(within))

    def _within_seen(self, within: Mask | None) -> Mask | None:
        """Return which chunks may be counted, without those that may not be seen; ``None`` for all."""
        if self._visible is None:
            return within
        return self._visible.chunks if within is None else within & self._visible.chunks
