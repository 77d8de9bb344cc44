"""Units of numbers: their names, and their size in the base unit."""

from __future__ import annotations

from fractions import Fraction
from types import MappingProxyType

_TIMES = {
    "s": "s sec secs second seconds",
    "ms": "ms msec msecs milli millis millisecond milliseconds",
    "us": "us µs usec micros microsecond microseconds",
    "ns": "ns nsec nanos nanosecond nanoseconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "d": "d day days",
    "week": "w week weeks",
    "month": "month months",
    "year": "y year years",
}
_SECONDS = {
    "s": Fraction(1),
    "ms": Fraction(1, 1000),
    "us": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
    "week": Fraction(7 * 86400),
    "month": Fraction(30 * 86400),
    "year": Fraction(365 * 86400),
}
_SIZES = {
    "byte": "b byte bytes octet octets",
    "kb": "k kb kilobyte kilobytes",
    "mb": "m mb megabyte megabytes",
    "gb": "g gb gigabyte gigabytes",
    "tb": "tb terabyte terabytes",
    "kib": "kib kibibyte kibibytes",
    "mib": "mib mibibyte mebibyte mebibytes mibibytes",
    "gib": "gib gibibyte gibibytes",
    "tib": "tib tebibyte tebibytes",
}
_BYTES = {"byte": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30,
          "tib": 2**40}  # fmt: skip

UNITS = MappingProxyType(
    {
        **{word: ("s", _SECONDS[unit]) for unit, words in _TIMES.items() for word in words.split()},
        **{word: ("byte", Fraction(_BYTES[unit])) for unit, words in _SIZES.items() for word in words.split()},
        **dict.fromkeys(("%", "percent", "pct", "percentage"), ("percent", Fraction(1))),
    }
)
"""Word → base unit (``s``, ``byte``, ``percent``), and how many of it one is."""

# ``connections_min`` is a minimum, ``about_us`` no time.
_NO_SUFFIX = frozenset("b k m g w y d h s us min day week month year % byte".split())  # noqa: SIM905
UNIT_SUFFIXES = MappingProxyType({word: word for word in UNITS if word not in _NO_SUFFIX})
"""Words that end a name and say what its number is counted in: ``timeout_ms``, ``sizeInBytes``."""

# Letters behind a figure, without a blank: ``30s``, ``5m`` is minutes, ``64M`` a size.
ATTACHED = MappingProxyType(
    {
        **{word: found for word, found in UNITS.items() if len(word) > 1},
        "s": UNITS["s"],
        "h": UNITS["h"],
        "d": UNITS["d"],
        "w": UNITS["week"],
        "m": UNITS["min"],
        "B": UNITS["byte"],
        "K": ("byte", Fraction(1024)),
        "k": ("byte", Fraction(1024)),
        "M": ("byte", Fraction(1024**2)),
        "G": ("byte", Fraction(1024**3)),
        "%": UNITS["percent"],
    }
)
