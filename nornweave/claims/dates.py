"""Days as people write them → ISO 8601."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

_MONTH_NAMES = "january february march april may june july august september october november december"
MONTHS = tuple(_MONTH_NAMES.split())
_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"
WEEKDAYS = tuple(_WEEKDAY_NAMES.split())
_MONTH_NUMBERS = {name[:length]: number for number, name in enumerate(MONTHS, 1) for length in (3, len(name))} | {
    "sept": 9
}
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATES = tuple(
    re.compile(rf"(?:{_WEEKDAY}\.?,?\s+)?(?:the\s+)?{body}", re.IGNORECASE)
    for body in (
        r"(?P<year>\d{4})[-/.](?P<number>\d{1,2})[-/.](?P<day>\d{1,2})(?:[T ]\d.*)?",
        rf"{_DAY}(?:\s+of)?[\s-]+{_MONTH}(?:,?[\s-]+(?P<year>\d{{4}}))?",
        rf"{_MONTH}\s+{_DAY}(?:,?\s+(?P<year>\d{{4}}))?",
        rf"{_MONTH},?\s+(?P<year>\d{{4}})",
    )
)
_RELATIVE = {
    "today": 0,
    "this morning": 0,
    "this afternoon": 0,
    "tonight": 0,
    "yesterday": -1,
    "last night": -1,
    "tomorrow": 1,
}
_NAMED_DAY = re.compile(
    rf"(?:on\s+)?(?:(?P<which>last|next|this|past|coming)\s+)?(?P<name>{'|'.join(WEEKDAYS)}|mon|tue|tues|wed|thu|thur|thurs|fri)",
    re.IGNORECASE,
)


def normal_date(text: str, said: datetime | None = None) -> str | None:
    """Return a day as ISO 8601, a month as ``2026-01``, a weekday that nothing fixes as ``monday``.

    Args:
        text: ``19 January 2026``, ``Jan 19, 2026``, ``2026-01-19``, ``Monday, 19 January 2026``, ``19 January``,
            ``Monday``, ``last Monday``, ``yesterday``.
        said: when that was said. A weekday is the most recent one (the same day counts, with ``last`` it does not;
            ``next`` and ``coming`` look forward); a day without a year is the nearest one.

    Returns:
        ``None`` for what is no day, a day that does not exist, and what needs ``said`` when it is not known.
    """
    text = " ".join(text.split()).strip(" .,")
    for pattern in _DATES:
        match = pattern.fullmatch(text)
        if match:
            return _calendar(match, said)
    lowered = text.lower()
    if lowered in _RELATIVE:
        return _shifted(said.date(), _RELATIVE[lowered]) if said else None
    named = _NAMED_DAY.fullmatch(text)
    if not named:
        return None
    day = next(number for number, name in enumerate(WEEKDAYS) if name.startswith(named["name"].lower()[:3]))
    return _weekday(day, (named["which"] or "").lower(), said) if said else WEEKDAYS[day]


def _calendar(match: re.Match[str], said: datetime | None) -> str | None:
    parts = match.groupdict()
    month = int(parts["number"]) if parts.get("number") else _MONTH_NUMBERS[parts["month"].lower()]
    if parts.get("day") is None:
        return f"{int(parts['year']):04d}-{month:02d}"
    if parts["year"]:
        found = _day(int(parts["year"]), month, int(parts["day"]))
        return found.isoformat() if found else None
    if said is None:
        return None
    candidates = [_day(said.year + shift, month, int(parts["day"])) for shift in (0, -1, 1)]
    known = [day for day in candidates if day]
    return min(known, key=lambda day: abs(day - said.date())).isoformat() if known else None


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _weekday(day: int, which: str, said: datetime) -> str | None:
    today = said.date()
    if which in {"next", "coming"}:
        return _shifted(today, (day - today.weekday() - 1) % 7 + 1)
    back = (today.weekday() - day) % 7
    return _shifted(today, -(7 if which in {"last", "past"} and back == 0 else back))


def _shifted(today: date, days: int) -> str | None:
    try:
        return (today + timedelta(days=days)).isoformat()
    except OverflowError:
        return None
