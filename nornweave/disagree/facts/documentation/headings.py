"""Find the names that headings give to the text below them."""

from __future__ import annotations

import re
from functools import lru_cache

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation.naming import CODE, identifier_of, is_like_identifier

_HEADING_WORDS = lazy_pattern(
    r"\b(?:the|a|an|options?|settings?|parameters?|propert(?:y|ies)|flags?|fields?|arguments?|methods?"
    r"|functions?|variables?|"
    r"config(?:uration)?|block|key|command|header|attribute|hook|class|object|type|env(?:ironment)?|since|new|in)\b",
    re.IGNORECASE,
)
_EMPTY_HEADINGS = frozenset(
    """
    configuration config readme options option settings setting parameters properties arguments usage reference
    api overview introduction general advanced basic basics notes note example examples guide installation
    install building getting started quickstart and the of for with a in other common additional default
    defaults directives variables environment faq description details syntax synopsis http https json todo sql
    html css rest cli gui ftp tls ssl sdk yaml xml url tcp udp dns jwt cors features changes upgrade upgrading
    migration how to documentation manual command line user
    """.split()  # noqa: SIM905
)
_SCREAMED = lazy_pattern(r"[A-Z][A-Z0-9]{2,}$")
_NUMBERING = lazy_pattern(r"^\s*(?:\d+(?:\.\d+)*\.?|[ivx]+\.)\s+")


@lru_cache(maxsize=1 << 12)
def heading_name(heading: str) -> tuple[str, bool]:
    """Return the name that a heading gives to what stands below it.

    Returns:
        The name as it is written, and whether it is an identifier; ordinary words are a weak name; empty if none.
    """
    text = _NUMBERING.sub("", heading).strip("#*: \t")
    spans = list(CODE.finditer(text))
    if spans:
        rest = _HEADING_WORDS.sub("", CODE.sub("", text))
        name = identifier_of(spans[0][2].split("=")[0].split(" ")[0].split("(")[0])
        return (name, True) if name and len(re.findall(r"[A-Za-z]{2,}", rest)) <= 1 else ("", False)
    bare = re.split(r"\s*[(=<\[{,]", text, maxsplit=1)[0].strip("*_ ")
    if " " not in bare and (
        is_like_identifier(bare) or (_SCREAMED.match(bare) and bare.lower() not in _EMPTY_HEADINGS)
    ):
        return bare, True
    words = re.findall(r"[A-Za-z][\w'-]*", text)
    if not 1 <= len(words) <= 5 or len(text) > 60 or all(word.lower() in _EMPTY_HEADINGS for word in words):
        return "", False
    return " ".join(words), False


def heading_path(section: str | None, title: str | None) -> list[str]:
    """Return the headings above a passage, outermost first; at most six."""
    parts = [part for part in (section or "").split(" > ") if part]
    for part in (title or "").split(" > "):
        if part and (not parts or parts[-1] != part):
            parts.append(part)
    return parts[-6:]
