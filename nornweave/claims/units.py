"""Units as people write them → base units: tables and nothing else.

Sizes: ``kB``, ``MB`` are powers of 1000, ``KiB``, ``MiB`` of 1024 (IEC 80000-13). Many write ``MB`` and mean ``MiB``;
``values.same_value`` takes that into account. A month is no fixed number of days and stays its own base unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType

SECOND = "s"
BYTE = "byte"
BIT = "bit"
PERCENT = "percent"
MONTH = "month"

_DURATIONS: tuple[tuple[str, Fraction], ...] = (
    ("ns nsec nanosecond nanoseconds", Fraction(1, 10**9)),
    ("us µs μs usec microsecond microseconds", Fraction(1, 10**6)),
    ("ms msec msecs millis millisecond milliseconds", Fraction(1, 1000)),
    ("s sec secs second seconds", Fraction(1)),
    ("min mins minute minutes", Fraction(60)),
    ("h hr hrs hour hours", Fraction(3600)),
    ("d day days", Fraction(86_400)),
    ("week weeks wk wks", Fraction(604_800)),
)
_CALENDAR: tuple[tuple[str, Fraction], ...] = (
    ("month months mo", Fraction(1)),
    ("year years yr yrs", Fraction(12)),
)
_PREFIXES = (("k", 1), ("m", 2), ("g", 3), ("t", 4), ("p", 5))
_SIZE_WORDS = ("kilo", "mega", "giga", "tera", "peta")
_BINARY_WORDS = ("kibi", "mebi", "gibi", "tebi", "pebi")
_FREQUENCIES: tuple[tuple[str, Fraction], ...] = (
    ("hz hertz", Fraction(1)),
    ("khz kilohertz", Fraction(10**3)),
    ("mhz megahertz", Fraction(10**6)),
    ("ghz gigahertz", Fraction(10**9)),
)

_PHYSICS: tuple[tuple[str, tuple[tuple[str, Fraction], ...]], ...] = (
    ("W", (("w watt watts", Fraction(1)), ("kw kilowatt kilowatts", Fraction(1000)), ("mw", Fraction(10**6)))),
    ("Wh", (("wh", Fraction(1)), ("kwh", Fraction(1000)), ("mwh", Fraction(10**6)))),
    ("V", (("v volt volts", Fraction(1)), ("kv", Fraction(1000)), ("mv millivolt millivolts", Fraction(1, 1000)))),
    ("A", (("amp amps ampere amperes", Fraction(1)), ("ma milliamp milliamps", Fraction(1, 1000)))),
    ("Ah", (("ah", Fraction(1)), ("mah", Fraction(1, 1000)))),
    ("g", (("gram grams", Fraction(1)), ("mg", Fraction(1, 1000)), ("kg kilogram kilograms", Fraction(1000)))),
    (
        "m",
        (
            ("metre metres meter meters", Fraction(1)),
            ("mm millimetre millimetres millimeter millimeters", Fraction(1, 1000)),
            ("cm centimetre centimetres centimeter centimeters", Fraction(1, 100)),
            ("km kilometre kilometres kilometer kilometers", Fraction(1000)),
        ),
    ),
    ("°C", (("°c celsius", Fraction(1)),)),
    ("dB", (("db decibel decibels", Fraction(1)),)),
    ("dBm", (("dbm", Fraction(1)),)),
)  # fmt: skip
PHYSICAL = frozenset(base for base, _ in _PHYSICS) | {"hertz"}
"""Base units that are neither a time, a size nor a count."""

# ISO 4217 codes that stand in technical text; a three-letter word that is none of them is no currency.
_CURRENCIES = """
AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF IDR ILS INR ISK JPY KRW MXN MYR NOK NZD PHP PLN RON SEK SGD THB TRY TWD UAH
USD VND ZAR
"""
CURRENCIES = frozenset(_CURRENCIES.split())
CURRENCY_SIGNS: Mapping[str, str] = MappingProxyType(
    {"€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY", "us$": "USD", "₹": "INR"}
)
CURRENCY_WORDS: Mapping[str, str] = MappingProxyType(
    {"euro": "EUR", "euros": "EUR", "dollar": "USD", "dollars": "USD", "yen": "JPY"}
)
PERCENT_WORDS = frozenset({"%", "percent", "per cent", "pct", "％"})
# "3 times": a bare count, as in MAX_RETRIES = 3.
COUNT_WORDS = frozenset({"time", "times"})

# Written as one word, and what they say.
RATES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "rps": ("request", "s"),
        "rpm": ("request", "min"),
        "rph": ("request", "h"),
        "qps": ("query", "s"),
        "qpm": ("query", "min"),
        "tps": ("transaction", "s"),
        "iops": ("operation", "s"),
        "fps": ("frame", "s"),
        "bps": (BIT, "s"),
        "kbps": ("kbit", "s"),
        "mbps": ("mbit", "s"),
        "gbps": ("gbit", "s"),
    }
)
# Short forms and synonyms of counted nouns.
NOUNS: Mapping[str, str] = MappingProxyType(
    {
        "req": "request",
        "reqs": "request",
        "msg": "message",
        "msgs": "message",
        "char": "character",
        "chars": "character",
        "tx": "transaction",
        "txs": "transaction",
        "txn": "transaction",
        "op": "operation",
        "ops": "operation",
        "conn": "connection",
        "pixel": "px",
    }
)


def _spread(table: tuple[tuple[str, Fraction], ...], base: str) -> Iterator[tuple[str, tuple[str, Fraction]]]:
    for names, factor in table:
        for name in names.split():
            yield name, (base, factor)


def _sizes() -> Iterator[tuple[str, tuple[str, Fraction]]]:
    yield from ((name, (BYTE, Fraction(1))) for name in ("byte", "bytes", "octet", "octets"))
    yield from ((name, (BIT, Fraction(1))) for name in ("bit", "bits"))
    for (prefix, power), word, binary in zip(_PREFIXES, _SIZE_WORDS, _BINARY_WORDS, strict=True):
        decimal, two = Fraction(1000**power), Fraction(1024**power)
        for end in ("byte", "bytes"):
            yield word + end, (BYTE, decimal)
            yield binary + end, (BYTE, two)
        yield f"{prefix}b", (BYTE, decimal)
        yield f"{prefix}ib", (BYTE, two)
        for end in ("bit", "bits"):
            yield word + end, (BIT, decimal)
            yield prefix + end, (BIT, decimal)


MEASURES: Mapping[str, tuple[str, Fraction]] = MappingProxyType(
    {
        **dict(_spread(_DURATIONS, SECOND)),
        **dict(_spread(_CALENDAR, MONTH)),
        **dict(_spread(_FREQUENCIES, "hertz")),
        **{name: found for base, table in _PHYSICS for name, found in _spread(table, base)},
        **dict(_sizes()),
    }
)
"""Lower-case unit → base unit and how many of it one is."""
