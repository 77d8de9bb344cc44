"""Extract the HTTP statuses that functions return."""

from __future__ import annotations

import re
from bisect import bisect_right
from http import HTTPStatus

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.code.reading import Reading, function_of, is_maker, owner_of
from nornweave.disagree.facts.code.sites import ValueSite
from nornweave.disagree.facts.values import Value

_NUMBERS = {re.sub(r"[^A-Z]", "", status.name): str(status.value) for status in HTTPStatus}
_STATUS = lazy_pattern(
    r"(?:\.(?:status|code|sendStatus|set_status|writeHead|WriteHeader|SetStatusCode|status_code|statusCode)\s?[(=]\s?"
    r"|\b(?:abort|HTTPException|HttpResponse|HTTPError|StatusCode|redirect)\([^()\n]{0,60}?"
    r"|\b(?:status_code|statusCode|httpStatus|status|HTTP_STATUS)\s?[:=]\s?)\b(?P<number>[1-5]\d\d)\b(?!\.\d)"
    r"|(?:http\.Status|HttpStatus\.|HttpStatusCode\.|HTTPStatus\.|StatusCode::|StatusCodes\.|Response\.Status\."
    r"|HttpServletResponse\.SC_)(?P<name>[A-Za-z_]{2,40})|\bHTTP_(?P<coded>[1-5]\d\d)_[A-Z_]{2,40}"
)
_COMPARED = lazy_pattern(r"(?:[=!]=|\bcase)\s{0,2}$")


def read_statuses(reading: Reading) -> None:
    """Add the HTTP statuses that functions return. Statuses in comparisons do not count."""
    text, starts = reading.text, [site.start for site in reading.sites]
    for found in (
        _STATUS.finditer(text) if "tatus" in text or "HTTP" in text or "code" in text or "abort" in text else ()
    ):
        name = re.sub(r"[^A-Z]", "", (found["name"] or "").upper())
        number = found["number"] or found["coded"] or _NUMBERS.get(name)
        if number is None or (
            not found["number"] and _COMPARED.search(text[max(0, found.start() - 8) : found.start()])
        ):
            continue
        at = bisect_right(starts, found.start()) - 1
        site: ValueSite | None = reading.sites[at] if at >= 0 else None
        while site is not None and site.end <= found.start():
            site = site.parent
        if site is None or site.role not in {"comment", "doc"}:
            _add(ValueSite("call", found.start(), found.end(), parent=site), number, reading)


def _add(site: ValueSite, number: str, reading: Reading) -> None:
    function = function_of(site)
    name = function.name if function is not None else reading.base.function
    if function is not None and is_maker(name):  # what making one answers
        name = next((place.name for place in function.ancestors() if place.role == "class"), "")
    if name:
        owner = owner_of(function, reading.base) if function is not None else ""
        reading.add(site, Value("status", number), "status", name=name, owner=owner)
