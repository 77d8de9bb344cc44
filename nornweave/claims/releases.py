"""Versions and days in sentences: ``the current version is 2.1``, ``shipped on Monday, 19 January 2026``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from nornweave.claims.dates import MONTHS, WEEKDAYS
from nornweave.claims.findings import Finding
from nornweave.claims.values import normal_date, normal_version

_VERSION_IS = re.compile(
    r"\b(?P<grade>minimum|min|required|current|latest|newest|stable|supported|recommended|default)?\s?(?P<what>"
    r"(?:[\w-]+\s){0,3}?)version(?:\snumber)?\s?(?:is|:|=|is now)\s"
    r"[`\"]?(?P<version>v?\d+(?:\.\d+)+[\w-]*|v\d+)\b(?!\s?(?:%|to\b))",
    re.IGNORECASE,
)
_REQUIRES = re.compile(
    r"\b(?i:requires?|required|needs?|needed):?\s(?:at least\s)?"
    r"(?P<what>[A-Z][A-Za-z+#]*(?:\s[A-Z][a-z]+)?)\s(?:version\s|>=\s?|≥\s?"
    r"|v){0,2}(?P<version>\d+(?:\.\d+)+)(?P<more>\+|\s(?:or|and)\s(?:later|newer|higher|above|up))?"
)
_RELEASE_IS = re.compile(
    r"\bthe\s(?:current|latest|newest)\s(?:stable\s)?(?:release|version)\s(?:of\s(?P<what>[\w"
    r" -]{2,40}?)\s)?is\s[`\"]?(?P<version>v?\d+(?:\.\d+)+[\w-]*)",
    re.IGNORECASE,
)
_MONTH = "|".join(f"{name}|{name[:3]}" for name in MONTHS)
_DATE = (
    rf"(?:(?:{'|'.join(WEEKDAYS)}),?\s)?(?:\d{{4}}-\d\d-\d\d|(?:the\s)?\d{{1,2}}(?:st|nd|rd|th)?(?:\sof)?\s"
    rf"(?:{_MONTH})\b\.?(?:,?\s\d{{4}})?|(?:{_MONTH})\.?\s\d{{1,2}}(?:st|nd|rd|th)?\b(?!\s?[.:]\d)(?:,?\s\d{{4}})?)"
    rf"|(?:last\s|next\s|this\s)?(?:{'|'.join(WEEKDAYS)})\b|yesterday|today"
)
_EVENTS = {
    "released": r"shipped|ships|deployed|released|launched|launches|went live|goes live|rolled out|rolls out|is live",
    "ended": r"stays? available until|available until|supported until|expires? on|expired on|sunset on|shuts? down"
    r" on|ends on|ended on|retired on|(?:switched|turned) off on|closes on|due (?:by|on)|deadline is",
    "started": r"starts on|started on|(?:re)?opens on|begins on|began on|takes effect on|effective from",
    "happened": r"happened on|occurred on|took place on|takes place on|is scheduled for"
    r"|(?:is|are) on(?=\s\w+day)",
}
_EVENT = re.compile(
    rf"(?P<verb>{'|'.join(f'(?P<{name}>{verbs})' for name, verbs in _EVENTS.items())})\b"
    rf"(?P<between>[^.;]{{0,40}}?)\b(?P<date>{_DATE})",
    re.IGNORECASE,
)
_EARLY_EVENT = re.compile(
    rf"^(?:on\s)?(?P<date>{_DATE}),?\s(?:we|they|i)?\s?(?P<verb>shipped|deployed|released|launched|rolled out)\s"
    rf"(?P<about>[^,.;]{{3,60}})",
    re.IGNORECASE,
)
_DEPLOY_NOUN = re.compile(
    rf"\b(?:release|deployment|launch|ship)(?:\s?date|d on)\s?(?:is|:|=)\s?(?P<date>{_DATE})", re.IGNORECASE
)


_NOBODY = re.compile(r"(?:we|they|i|he|she|you)(?: have| will| then| just)?", re.IGNORECASE)
_NAME = r"(?P<what>[A-Z][A-Za-z+#.]*[A-Za-z+#](?:\s[A-Z][a-z]+)?)"
_NEEDED = re.compile(
    r"\b(?:need|requir|prerequisit|depend|must|install|support|works? with|tested|minimum)", re.IGNORECASE
)
_OR_NEWER = re.compile(
    rf"\b{_NAME}\s(?:version\s|v){{0,2}}(?P<version>\d{{1,4}}(?:\.\d+){{0,3}})"
    r"(?:\+|\s(?:or|and)\s(?:later|newer|higher|above|up(?:wards)?)\b)"
)
_RUNS_ON = re.compile(
    rf"\b(?:runs?|running|built|based|deployed|hosted|powered)\s(?:on|with|by)\s{_NAME}\s(?:version\s|v){{0,2}}"
    r"(?P<version>\d{1,4}(?:\.\d+){0,3})(?![\w.-]\w|\+|\s(?:or|and)\s(?:later|newer|higher|above|up)|\s?[%°])"
)


def versions(text: str) -> Iterator[Finding]:
    """Find which version is current or needed."""
    for pattern in (_VERSION_IS, _REQUIRES, _RELEASE_IS, _OR_NEWER, _RUNS_ON):
        for match in pattern.finditer(text):
            version = normal_version(match["version"])
            if pattern is _OR_NEWER and not _NEEDED.search(text[: match.start()]):
                continue
            if version is None and pattern in {_OR_NEWER, _RUNS_ON}:
                version = match["version"]
            if version is None:
                continue
            needed = pattern in {_REQUIRES, _OR_NEWER} or (match.groupdict().get("grade") or "").lower() in {
                "minimum",
                "min",
                "required",
            }
            what = (match.groupdict().get("what") or "").strip()
            yield Finding(
                kind="version",
                attribute="min_version" if needed else "version",
                value=version,
                start=match.start("version"),
                end=match.end("version"),
                about=(what,) if what else (),
            )


def events(text: str, said: datetime | None) -> Iterator[Finding]:
    """Find when something was released, starts, ends or happened.

    Args:
        said: what weekdays and ``yesterday`` are counted from; ``None`` leaves a weekday a weekday.
    """
    for match in _EVENT.finditer(text):
        attribute = next(name for name in _EVENTS if match[name])
        about = re.split(r"[:;]\s|,\s(?=\w+\s\w+\s)", text[: match.start("verb")])[-1]
        about = match["between"] if _NOBODY.fullmatch(about.strip()) else about
        yield from _event(
            match,
            attribute,
            (re.sub(r"\s(?:was|were|is|are|has been|have been|be|we|will be|be)\s*$", "", about.rstrip()),),
            said,
        )
    for match in _EARLY_EVENT.finditer(text):
        yield from _event(match, "released", (match["about"],), said)
    for match in _DEPLOY_NOUN.finditer(text):
        yield from _event(match, "released", (text[: match.start()],), said)


def _event(match: re.Match[str], attribute: str, about: tuple[str, ...], said: datetime | None) -> Iterator[Finding]:
    day = normal_date(match["date"], said)
    if day is not None and re.search(r"\bnot\b|\bnever\b", match[0]) is None:
        yield Finding(
            kind="date",
            attribute=attribute,
            value=day,
            start=match.start("date"),
            end=match.end("date"),
            about=about,
            event=True,
        )
