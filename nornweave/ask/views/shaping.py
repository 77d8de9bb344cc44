"""Records as JSON, in the shapes that the API documents. Each field is declared once, in its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Final, TypeVar, cast

Shape = TypeVar("Shape")
LEFT_OUT: Final = object()
"""Instead of a value: the key is not there."""
_AS_THEY_ARE = frozenset({str, int, float, bool, list, dict})


def in_shape(shape: type[Shape], *records: object, **others: object) -> Shape:
    """Return a dictionary with the keys of ``shape``. A value comes from ``others`` or from the attribute of that name.

    Args:
        shape: a ``TypedDict``; its order of keys is that of the document.
        records: the first record with an attribute of the key's name is used.
        others: JSON for keys that are not plain attributes; ``LEFT_OUT`` leaves a key out.
    """
    document: dict[str, object] = {}
    for key in shape.__annotations__:
        value = others[key] if key in others else _attribute(records, key)
        if value is not LEFT_OUT:
            document[key] = value
    return cast(Shape, document)


def moment_text(moment: datetime | None) -> str | None:
    """Return a moment as ISO 8601 with its zone, ``Z`` for UTC; ``None`` for ``None``."""
    return moment.isoformat().replace("+00:00", "Z") if moment else None


def _attribute(records: Sequence[object], name: str) -> object:
    """Return an attribute as JSON; raises ``StopIteration`` if no record has it."""
    value = next(value for record in records if (value := getattr(record, name, LEFT_OUT)) is not LEFT_OUT)
    if value is None or type(value) in _AS_THEY_ARE:  # asking whether they are mappings costs more than all else here
        return value
    match value:
        case Enum():
            return value.value
        case datetime():
            return moment_text(value)
        case tuple():
            return list(value)
        case Mapping():
            return dict(value)
    return value
