"""Split sentences, and find the qualifiers for which one may not hold now and for everybody."""

from __future__ import annotations

import re

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Qualifier

_SENTENCE_END = lazy_pattern(
    r"[.!?](?=[\s*_)\"'”]*(?:\s+|$))(?=[*_)\"'”]*\s*(?:[A-Z`\"'(*\[<:]|$))|\n[ \t]*\n|\n(?=[ \t]*(?:[-*+•]|>)[ \t])"
)
MAX_SENTENCE = 1_200
"""Characters; a longer one is a table or generated, and is cut."""
_ABBREVIATION = lazy_pattern(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|incl|max|min|no|fig|eq|al)|\b[A-Z])$", re.IGNORECASE
)


def sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Split a stretch into sentences; ``e.g.``, ``1.5`` and code spans do not end one."""
    found = []
    begin = start
    for match in _SENTENCE_END.finditer(text, start, end):
        while match.end() - begin > MAX_SENTENCE:
            found.append((begin, begin + MAX_SENTENCE))
            begin += MAX_SENTENCE
        if match[0] == "." and _ABBREVIATION.search(text[max(begin, match.start() - 8) : match.start()]):
            following = text[match.end() : match.end() + 2].strip()
            if not following[:1].isupper() or text[match.start() - 1 : match.start()].isupper():
                continue
        if text.count("`", begin, match.start()) % 2:
            continue
        found.append((begin, match.end()))
        begin = match.end()
    found += [(at, min(at + MAX_SENTENCE, end)) for at in range(begin, end, MAX_SENTENCE)]
    return found


_I = re.IGNORECASE
# What the whole sentence must not say.
_OF_SENTENCE: tuple[tuple[Qualifier, re.Pattern[str]], ...] = (
    ("question", lazy_pattern(r"\?[\s)\"'*]*$")),
    ("proposal", lazy_pattern(r"\b(?:propos(?:e[ds]?|al)|suggest(?:s|ed|ion)?|let'?s|plan(?:s|ned)? to|should we"
                            r"|we should|we could|"
                            r"feature request|would (?:be|like|prefer|love|rather)|could be|in (?:the|a) future|should "
                            r"(?:default to|really|probably|instead|get|go))\b", _I)),
    ("reported", lazy_pattern(r"\b(?:docs?|documentation|docstrings?|readme|manual|page|comment|guide|tutorial"
                            r"|spec)\b(?: \w+){0,3}? "
                            r"(?:says?|said|states?|stated|claims?|claimed|has|have|lists?|mentions?|shows?"
                            r"|reads?|gives?|suggests?)\b|"
                            r"\baccording to\b|\bsays? that\b|^\s*>", _I)),
)  # fmt: skip
# What the clause around the value must not say.
_OF_CLAUSE: tuple[tuple[Qualifier, re.Pattern[str]], ...] = (
    ("history", lazy_pattern(r"\b(?:was|were|used to|previous(?:ly)?|formerly|originally|until (?:v|version )?\d"
                           r"|prior to|before (?:v|version )?\d|"
                           r"in (?:earlier|older|previous|prior|past|former) (?:versions?|releases?)|had been"
                           r"|has been changed from|"
                           r"old(?:er)? (?:default|value|version|behaviou?r)s?)\b|^\W*before\s*,", _I)),
    ("hedged", lazy_pattern(r"\b(?:maybe|perhaps|i (?:think|guess|suppose|believe|assume)|probabl[ye]"
                          r"|approximately|roughly|"
                          r"(?:strongly |highly )?recommend(?:s|ed|ation)?|typically|usually|normally|generally"
                          r"|often|might|may be|apparently|seems?|"
                          r"sane|reasonable|sensible|good (?:value|default|start)|(?:about|around) (?=\d|`|half"
                          r"|one|two|five|ten))\b|~\d", _I)),
    ("relative", lazy_pattern(r"\b(?:twice|half (?:of )?the|\d+ times (?:the|as|more|larger|its)|\dx|"
                            r"(?:more|less|greater|lower|higher|larger|smaller|longer|shorter|bigger) "
                            r"than (?:the|its|this|that)|same as|equal to the|multiple of|relative to|per )\b", _I)),
)  # fmt: skip
_PLANNED = lazy_pattern(
    r"\b(?:propose[ds]?|planned|in (?:the|a) future)\b|\bin (?:\w+ |v)?\d+\.\d\w*\b[^.;]{0,120}\bwill\b", _I
)
_LOCAL = lazy_pattern(
    r"\b(?:i|we|i've|we've|i'm|we're|they|he|she)\b(?: \w+){0,2}? (?:set|use[ds]?|using|had|have|run|raised?"
    r"|changed?|configured?|increased?|"
    r"decreased?|lower(?:ed)?|put|call(?:ed)?|go|went|switch(?:ed)?|bump(?:ed)?|tried|try|reduced?)\b|\b(?:my"
    r"|our|mine|ours)\b",
    _I,
)
_EXAMPLE = lazy_pattern(
    r"\b(?:e\.g\.|for (?:example|instance)|such as|(?<!i )suppose|imagine|let's say|say,|examples?)(?=\W)"
    r"|\blike\b(?= (?:this|`|\d))",
    _I,
)
_NOT_CONDITIONS = lazy_pattern(
    r"\b(?:if|when|unless)\s+(?:(?:it|this|that|the|is|are|option|value|setting|argument|parameter|flag|key"
    r"|variable|one|a|you|explicitly|"
    r"`[^`\n]{1,60}`)\s+){0,4}?(?:not|un\w+|omitted|missing|absent|empty|otherwise|do not|don't|isn't|set|given"
    r"|specified|overridden|"
    r"changed|provided|configured|no|needed|necessary|desired|wanted|required|you (?:want|need|wish"
    r"|like))\b(?:\s+(?:set|given|specified|provided|configured|passed|defined|supplied|present))?",
    _I,
)
_CONDITION = lazy_pattern(
    r"\b(?:if|when|unless|whenever|otherwise|depending|only (?:if|when|for|on|in|with)|in case|as long as|except|"
    r"on (?:windows|linux|macos|mac|unix|posix|mri|jruby|android|ios|arm\w*|x86\w*|\d\d-bit)|in (?:[\w-]+ ){1,2}modes?|"
    r"for (?:[\w-]+ (?:users|brokers|clients|servers|connections|requests|workers|versions|plans|clusters"
    r"|environments|databases|"
    r"backends?|modes?|tasks?)\b))",
    _I,
)
_SCOPE = lazy_pattern(
    r"\b(?:on (?:windows|linux|macos|mac|unix|posix|mri|jruby|android|ios)|in (?:[\w-]+ ){1,2}modes?|only (?:if"
    r"|when|on|in))\b",
    _I,
)
_CLAUSE_BREAK = lazy_pattern(r"[,;]\s|\s\(|\s[-–—]\s|\s(?:but|while|whereas|although|and i|and we|so)\s", _I)


def qualifiers_of(text: str, sentence: tuple[int, int], at: int, end: int, *, talk: bool) -> tuple[Qualifier, ...]:
    """Return why a value in a sentence may not be a fact.

    Args:
        at: where the statement begins (its name or its value, whichever is first); ``end`` behind its value.
        talk: somebody says it in a thread: plans and own settings are looked for too.
    """
    begin, stop = sentence
    whole = text[begin:stop]
    found: list[Qualifier] = [
        name for name, pattern in _OF_SENTENCE if (talk or name != "proposal") and pattern.search(whole)
    ]
    if not talk and _PLANNED.search(whole):
        found.append("proposal")
    clause_start, clause_end = _clause(text, begin, stop, at, end)
    clause = text[clause_start:clause_end]
    found += [name for name, pattern in _OF_CLAUSE if pattern.search(clause)]
    if talk and _LOCAL.search(clause):
        found.append("local")
    if _EXAMPLE.search(text[begin:end]):
        found.append("example")
    if _is_conditional(text, begin, stop, at, end):
        found.append("conditional")
    return tuple(found)


def _clause(text: str, begin: int, stop: int, at: int, end: int) -> tuple[int, int]:
    first = begin
    for match in _CLAUSE_BREAK.finditer(text, begin, at):
        first = match.end()
    following = _CLAUSE_BREAK.search(text, end, stop)
    return first, following.start() if following else stop


def _is_conditional(text: str, begin: int, stop: int, at: int, end: int) -> bool:
    """Tell whether a condition scopes the value: it opens the sentence, or follows the value closely."""
    plain = _NOT_CONDITIONS.sub(lambda match: " " * len(match[0]), text[begin:stop])
    lead = plain[: max(0, at - begin)].lstrip(" *_\n-+>#")
    opening = _CONDITION.match(lead)
    if opening:
        return True
    if _SCOPE.search(plain[at - begin : end - begin]):
        return True
    tail = plain[end - begin : end - begin + 60]
    tail = re.split(r"[.;]\s|\sbut\s|,\s(?:and|so|it|I|we)\s", tail, maxsplit=1)[0]
    return bool(_CONDITION.search(tail)) or bool(
        re.search(r"\bonly (?:if|when|on|in)\b", plain[max(0, at - begin - 40) :][:100], _I)
    )
