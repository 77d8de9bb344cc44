"""Extract the HTTP statuses that functions answer."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from http import HTTPStatus

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.code.reading import MAX_FACTS, Reading, function_of, is_maker, owner_of
from nornweave.disagree.facts.code.sites import ValueSite
from nornweave.disagree.facts.values import Value

_STATUS_NAMES = {re.sub(r"[^A-Z]", "", status.name): status.value for status in HTTPStatus}
_CODE = lazy_pattern(r"\b[1-5]\d\d\b(?!\.\d)")
_BEFORE_CODE = lazy_pattern(
    r"(?:\.(?:status|code|sendStatus|set_status|writeHead|WriteHeader|SetStatusCode|status_code|statusCode)\s?(?:\(|=)\s?"
    r"|\b(?:abort|HTTPException|HttpResponse|HTTPError|StatusCode|redirect)\([^()\n]{0,60}"
    r"|\b(?:status_code|statusCode|httpStatus|status|HTTP_STATUS)\s?[:=]\s?)$"
)
_STATUS_NAME = lazy_pattern(
    r"(?:http\.Status|HttpStatus\.|HttpStatusCode\.|HTTPStatus\.|StatusCode::|StatusCodes\.|"
    r"Response\.Status\.|HttpServletResponse\.SC_)(?P<name>[A-Za-z_]{2,40})|\bHTTP_(?P<coded>[1-5]\d\d)_[A-Z_]{2,40}"
)
_COMPARED = lazy_pattern(r"(?:[=!]=|\bcase)\s{0,2}$")


def read_statuses(reading: Reading) -> None:
    """Read the HTTP statuses that functions answer."""
    starts = [site.start for site in reading.sites]
    for start, end, number in _statuses(reading.text):
        site = _around(start, starts, reading)
        if site is None or site.role not in {"comment", "doc"}:
            _add(ValueSite("call", start, end, parent=site), number, reading)
        if len(reading.facts) >= MAX_FACTS:
            return


def _add(site: ValueSite, number: int | str, reading: Reading) -> None:
    function = function_of(site)
    name = function.name if function is not None else reading.base.function
    if function is not None and is_maker(name):  # what making one answers
        name = next((place.name for place in function.ancestors() if place.role == "class"), "")
    if name:
        owner = owner_of(function, reading.base) if function is not None else ""
        reading.add(site, Value("status", str(number)), "status", name=name, owner=owner)


def _statuses(text: str) -> Iterator[tuple[int, int, int | str]]:
    """Yield start, end and number of each status that is given, not compared with."""
    if "tatus" in text or "code" in text or "abort" in text or "HTTP" in text:
        for found in _CODE.finditer(text):
            before = text[max(0, found.start() - 90) : found.start()]
            if _BEFORE_CODE.search(before.rpartition("\n")[2]):
                yield found.start(), found.end(), found[0]
    if "Status" in text or "HTTP_" in text:
        for found in _STATUS_NAME.finditer(text):
            name = re.sub(r"[^A-Z]", "", (found["name"] or "").upper())
            number = found["coded"] or _STATUS_NAMES.get(name)
            if number is not None and not _COMPARED.search(text[max(0, found.start() - 8) : found.start()]):
                yield found.start(), found.end(), number


def _around(offset: int, starts: list[int], reading: Reading) -> ValueSite | None:
    at = bisect_right(starts, offset) - 1
    site = reading.sites[at] if at >= 0 else None
    while site is not None and site.end <= offset:
        site = site.parent
    return site
