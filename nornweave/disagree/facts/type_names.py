"""Normalise type names into families: ``int``, ``Optional[str]``, ``a list of strings``."""

from __future__ import annotations

import re

from nornweave.disagree.facts.values import Value

TYPE_FAMILIES = {
    name: family
    for family, names in {
        "integer": "int integer long short byte uint uint8 uint16 uint32 uint64 int8 int16 int32 int64 i8 i16 i32 i64 "
                   "u8 u16 u32 u64 usize isize size_t bigint natural ssize_t",
        "number": "number float double decimal float32 float64 f32 f64 real numeric",
        "string": "string str text char varchar charsequence cstring ustring unicode",
        "boolean": "bool boolean flag",
        "list": "list array slice sequence vector vec iterable tuple collection arraylist",
        "set": "set frozenset hashset",
        "map": "dict map object mapping hash hashmap record dictionary",
        "function": "function callable func callback fn lambda closure",
        "none": "none null nil void undefined unit",
        "duration": "duration timedelta timespan",
        "bytes": "bytes buffer bytearray",
    }.items()
    for name in names.split()
}  # fmt: skip
LOOSE_TYPES = frozenset(
    {frozenset(pair) for pair in (("integer", "number"), ("integer", "duration"), ("number", "duration"),
                                  ("string", "duration"), ("list", "set"), ("string", "bytes"), ("map", "function"),
                                  ("none", "map"))}
)  # fmt: skip
"""Families that documentation writes for each other."""


def read_type(text: str) -> Value | None:
    """Read a type: ``int``, ``Optional[str]``, ``string | string[]``; ``None`` if a part of it is not known.

    Returns:
        Families of ``TYPE_FAMILIES``, sorted, joined by ``|``.
    """
    bare = re.sub(r"\bof\b[^|,/]*|\b(?:Optional|Union|Nullable)\[", "|", text.strip("`*&? "))
    bare = re.sub(r"\b(?:optional|nullable|a|an|or|and|the)\b", "|", bare)
    families = set()
    for part in re.split(r"[|,/]| or ", bare.replace("[]", " list ").replace("'", " ")):
        head = re.sub(r"[\[<(].*", "", part).strip(" *&?.[]>)}{:").rpartition(".")[2]
        words = head.lower().split()
        if not words:
            continue
        family = TYPE_FAMILIES.get("list" if "list" in words[1:] else words[0])
        if family is None:
            return None
        families.add(family)
    return Value("type", "|".join(sorted(families))) if families else None
