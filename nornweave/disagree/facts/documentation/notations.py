"""Read what stands in blocks of code only to be read: ``[ name: <type> | default = v ]``, and help texts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact
from nornweave.disagree.facts.documentation.literals import whole_value
from nornweave.disagree.facts.documentation.page import Page, Subject

_NOTATIONS = (
    # Prometheus and what follows its style: ``[ scrape_timeout: <duration> | default = 10s ]``
    lazy_pattern(
        r"^[ \t>#*-]*\[?[ \t]*(?P<name>[A-Za-z][\w.-]{1,60})[ \t]*:?[ \t]*<[\w ]{1,40}>[ \t]*"
        r"\|[ \t]*default[ \t]*[=:][ \t]*(?P<value>[^\n\]|]{1,80}?)[ \t]*(?:\]|$)",
        re.MULTILINE,
    ),
    # ``--rc-max-header-bytes int   Maximum size of a header (default 4096)``
    lazy_pattern(
        r"^[ \t]*(?:-\w,?[ \t]+)?(?P<name>--[a-z][\w-]{1,60})\b[^\n]{0,400}?"
        r"[(\[]default(?:s to)?:?[ \t]+(?P<value>[^()\[\]\n]{1,60})[)\]]",
        re.MULTILINE,
    ),
)


def notation_facts(page: Page, start: int, end: int, owner: str) -> Iterator[Fact]:
    """Yield the defaults that lines of a block of code state in a notation for readers."""
    if "default" not in page.lower[start:end]:
        return
    first = page.text.rfind("\n", 0, start) + 1
    for pattern in _NOTATIONS:
        for match in pattern.finditer(page.text, first, end):
            value = whole_value(match["value"])
            subject = Subject(name=match["name"], form="list", owner=owner)
            fact = page.fact(subject, "default", value, match.start("name"), match.end()) if value else None
            if fact is not None:
                yield fact
