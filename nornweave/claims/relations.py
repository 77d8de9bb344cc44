"""Support and ownership in sentences: ``supports X``, ``X was removed in v3``, ``X owns Y``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nornweave.claims.findings import Finding
from nornweave.claims.lexicon import words_in
from nornweave.claims.vocabulary import split_name

_NAME = r"`?[A-Za-z0-9][\w.+#/-]*`?"
_PHRASE = rf"{_NAME}(?:\s{_NAME}){{0,4}}?"
_END = (
    r"(?=\s*(?:$|\.(?!\d)|[,;:()–—]|\s(?:for|in|on|at|with|by|and|or|but|as|that|which|when|if|since|from|to|so"
    r"|because|until|via|through|using|is|are)\b))"
)
_SUPPORTS = re.compile(
    r"\b(?:(?P<no>(?:does not|do not|doesn't|don't|no longer|cannot|can't)\s(?:yet\s|currently\s)?support)"
    rf"|supports|(?:we|they|also|now|only|can|will) support)"
    rf"\s(?P<object>{_PHRASE}){_END}"
)
_IS_SUPPORTED = re.compile(
    rf"(?:^|[,;:]\s|\b(?:the|a|an)\s)(?P<object>{_PHRASE})\s(?P<when>is|are|was|were|has been|have been|will be)\s"
    rf"(?:now |currently |also |already |officially )?"
    r"(?P<state>not supported|no longer supported|unsupported|supported|available(?=\son\b)|deprecated"
    r"|discontinued|no longer"
    r" available)\b(?!\s(?:by|with a|through))",
    re.IGNORECASE,
)
_REMOVED = re.compile(
    rf"(?:^|[,;:#]\s?|\b(?:the|a|an)\s)(?P<object>{_PHRASE})\s(?:(?P<when>is|are|was|were|has been|have been|will"
    rf" be|gets)\s)?"
    r"(?P<state>removed|deprecated|dropped|discontinued)\s(?:in|since|as of|from|with)\s(?:version\s"
    r"|release\s)?`?v?(?P<version>\d[\w.-]*)",
    re.IGNORECASE,
)
_SUPPORT_FOR = re.compile(
    r"\b(?P<state>drop(?:s|ped)?|remove[sd]?|deprecate[sd]?|end(?:s|ed)?|discontinue[sd]?)\ssupport\sfor\s"
    rf"(?P<object>{_PHRASE}){_END}",
    re.IGNORECASE,
)
_SCOPE = re.compile(
    r"\s(?:across|in|for|within|on|by|when|during|here|with|under|between|from|at|if|as|inside|outside)\b",
    re.IGNORECASE,
)
_LOOSE_OBJECT = words_in(
    """
    only both all multiple various many it this these those the following up at several different any
    more a an using you your them us their its our two three four some each every most such other custom
    additional new that what which large small full
    """
)
_LOOSE_NOUNS = words_in(
    """
    types applications operations features variables languages options values data requests use usage
    users things everything formats files objects actions parameters arguments fields events functions
    methods platforms systems tools
    """
)
_OWNER = r"(?:the\s)?(?P<owner>@?[A-Za-z][\w&/-]*(?:\s[A-Za-z&][\w&/-]*){0,3}?)"
_OWNER_END = (
    r"(?=\s*(?:$|[.,;:()]|\s(?:as of|since|until|and|who|which|now|today|team|because|for|in|from|together|so|but)\b))"
)
_OWNED = re.compile(rf"\s(?:is|are)\s(?:now |currently )?(?:owned|maintained)\sby\s{_OWNER}{_OWNER_END}")
_OWNS = re.compile(
    r"(?:^|[,;:]\s|\b(?:now|and|that|because|so)\s)(?:the\s)?(?P<owner>[A-Za-z][\w&/-]*"
    rf"(?:\s[A-Za-z&][\w&/-]*){{0,3}}?)\s(?:now\s|team now\s)?(?:owns|maintains)\s"
    rf"(?P<about>(?:the|our)\s{_PHRASE}){_END}"
)
_OWNER_LINE = re.compile(
    r"^[*_`]{0,2}(?:code\s?)?(?:owners?|maintainers?|owning team|owned by|maintained by|responsible(?:"
    r" team)?)[*_`]{0,2}\s?[:=]\s?(?P<owner>@?[\w][\w &@/.-]{1,50})$",
    re.IGNORECASE,
)
_CLAUSE_CUT = re.compile(r"[,;:()]")
_ARTICLE = re.compile(r"^(?:the|our|an?)\s", re.IGNORECASE)
_NOBODY = words_in(
    """
    it this that these those they we i you he she who which nobody everyone someone somebody one each
    user users customer customers account caller root process thread object class default community
    volunteers people others both
    """
)


def supports(text: str) -> Iterator[Finding]:
    """Find what is supported, deprecated or removed, one claim per thing."""
    seen: set[str] = set()
    for pattern in (_REMOVED, _SUPPORTS, _IS_SUPPORTED, _SUPPORT_FOR):
        for match in pattern.finditer(text):
            finding = _support(match)
            if finding and finding.about[0].lower() not in seen:
                seen.add(finding.about[0].lower())
                yield finding


def _is_loose(words: tuple[str, ...], about: str) -> bool:
    """Tell whether a phrase is too general to be a thing that is supported or not."""
    if not words or (words[0].endswith("ing") and len(words) == 1) or "following" in words:
        return True
    return len(words) == 1 and about.islower() and (words[0] in _LOOSE_NOUNS or words[0].endswith("ed"))


def _support(match: re.Match[str]) -> Finding | None:
    parts = match.groupdict()
    about = re.sub(r"^(?:the|a|an)\s", "", parts["object"], flags=re.IGNORECASE).strip("` ")
    words = split_name(about)
    if _is_loose(words, about) or about.lower().split()[0] in _LOOSE_OBJECT or len(words) > 6:
        return None
    state = (parts.get("state") or "").lower()
    if "not" in state and _SCOPE.match(match.string, match.end()):
        return None  # "not supported across regions": somewhere else it is
    if not state:
        value = "unsupported" if parts.get("no") else "supported"
    elif state.startswith(("remove", "drop", "discontinu", "end")) or state == "no longer available":
        value = "removed"
    elif state.startswith("deprecate"):
        value = "deprecated"
    else:
        value = "supported" if state in {"supported", "available"} else "unsupported"
    return Finding(
        kind="support",
        attribute="support",
        value=value,
        start=match.start("object"),
        end=match.end(),
        about=(about,),
        event=value in {"removed", "deprecated"},
        planned=parts.get("when") == "will be",
    )


def owners(text: str, around: tuple[str, ...] = ()) -> Iterator[Finding]:
    """Find who owns what.

    Args:
        around: headings, for a line that says only who (``owner: X``).
    """
    for pattern in (_OWNED, _OWNS):
        for match in pattern.finditer(text):
            owner = owner_name(match["owner"])
            about = _CLAUSE_CUT.split(text[: match.start()])[-1] if pattern is _OWNED else match["about"]
            if owner:
                yield _owned(match, owner, (_ARTICLE.sub("", about.strip()),))
    line = _OWNER_LINE.match(text)
    if line and around and owner_name(line["owner"]):
        yield _owned(line, owner_name(line["owner"]), around)


def _owned(match: re.Match[str], owner: str, about: tuple[str, ...]) -> Finding:
    return Finding(
        kind="owner", attribute="owner", value=owner, start=match.start("owner"), end=match.end("owner"), about=about
    )


def owner_name(written: str) -> str:
    """Return a team or person as claims name them: lower case, without ``the`` and ``team``; empty for nobody."""
    name = " ".join(written.lower().strip("@ .").split())
    name = re.sub(r"^(?:the|our)\s|\s(?:team|squad|group|guild)$", "", name)
    return "" if not name or name.split()[0] in _NOBODY or name.split()[-1] in _NOBODY else name
