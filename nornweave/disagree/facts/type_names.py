"""Recognise the names of types: ``int``, ``Optional[str]``, ``a list of strings``."""

from __future__ import annotations

import re

_TYPES = frozenset(
    """
    int integer long short byte uint uint8 uint16 uint32 uint64 int8 int16 int32 int64 i8 i16 i32 i64 u8 u16 u32
    u64 usize isize size_t bigint natural ssize_t number float double decimal float32 float64 f32 f64 real
    numeric string str text char varchar charsequence cstring ustring unicode bool boolean flag list array slice
    sequence vector vec iterable tuple collection arraylist set frozenset hashset dict map object mapping hash
    hashmap record dictionary function callable func callback fn lambda closure none null nil void undefined
    unit duration timedelta timespan bytes buffer bytearray
    """.split()  # noqa: SIM905
)


def is_type(text: str) -> bool:
    """Tell whether a text is a type, or several, each of which is known: ``string | string[]``."""
    bare = re.sub(r"\bof\b[^|,/]*|\b(?:Optional|Union|Nullable)\[", "|", text.strip("`*&? "))
    bare = re.sub(r"\b(?:optional|nullable|a|an|or|and|the)\b", "|", bare)
    is_known = False
    for part in re.split(r"[|,/]| or ", bare.replace("[]", " list ").replace("'", " ")):
        head = re.sub(r"[\[<(].*", "", part).strip(" *&?.[]>)}{:").rpartition(".")[2]
        words = head.lower().split()
        if words and "list" not in words[1:] and words[0] not in _TYPES:
            return False
        is_known = is_known or bool(words)
    return is_known
