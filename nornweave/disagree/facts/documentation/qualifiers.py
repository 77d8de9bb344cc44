"""Split sentences, and find qualifiers: reasons why a sentence may not hold now and for everybody."""

from __future__ import annotations

import re
from itertools import pairwise

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
    """Return the start and end of each sentence. ``e.g.``, ``1.5`` and code spans do not end a sentence."""
    cuts = [start]
    for match in _SENTENCE_END.finditer(text, start, end):
        if match[0] == "." and _ABBREVIATION.search(text[max(cuts[-1], match.start() - 8) : match.start()]):
            following = text[match.end() : match.end() + 2].strip()
            if not following[:1].isupper() or text[match.start() - 1 : match.start()].isupper():
                continue
        if not text.count("`", max(cuts[-1], match.start() - MAX_SENTENCE), match.start()) % 2:
            cuts.append(match.end())
    stretches = pairwise([*cuts, end])
    return [(at, min(at + MAX_SENTENCE, last)) for first, last in stretches for at in range(first, last, MAX_SENTENCE)]


_I = re.IGNORECASE
_CONDITION = lazy_pattern(
    r"\b(?:if|when|unless|whenever|otherwise|depending|only (?:if|when|for|on|in|with)|in case|as long as|except"
    r"|on (?:windows|linux|macos|mac|unix|posix|mri|jruby|android|ios|arm\w*|x86\w*|\d\d-bit)|in (?:[\w-]+ ){1,2}modes?"
    r"|for [\w-]+ (?:users|clients|servers|connections|requests|workers|versions|clusters|environments|backends?))\b",
    _I,
)
# What makes a statement no fact about now and everybody: a question, a plan, what others say, what was, what is
# compared with something else, an example; where it is looked for, and whether only people in a thread say it so.
_NOT_MEANT: tuple[tuple[str, bool, re.Pattern[str]], ...] = (
    ("sentence", False, lazy_pattern(
        r"\?[\s)\"'*]*$|\b(?:propose[ds]?|planned|in (?:the|a) future)\b"
        r"|\bin (?:\w+ |v)?\d+\.\d\w*\b[^.;]{0,120}\bwill\b"
        r"|\b(?:docs?|documentation|docstrings?|readme|manual|page|comment|guide|tutorial|spec)\b(?: \w+){0,3}? "
        r"(?:says?|said|states?|stated|claims?|claimed|has|have|lists?|mentions?|shows?|reads?|gives?|suggests?)\b"
        r"|\baccording to\b|\bsays? that\b|^\s*>", _I)),
    ("sentence", True, lazy_pattern(
        r"\b(?:propos(?:e[ds]?|al)|suggest(?:s|ed|ion)?|let'?s|plan(?:s|ned)? to|should we|we (?:should|could)"
        r"|feature request|would (?:be|like|prefer|love|rather)|could be"
        r"|should (?:default to|really|probably|instead|get|go))\b", _I)),
    ("clause", False, lazy_pattern(
        r"\b(?:was|were|used to|previous(?:ly)?|formerly|originally|until (?:v|version )?\d|before (?:v|version )?\d"
        r"|prior to|in (?:earlier|older|previous|prior|past|former) (?:versions?|releases?)|had been|has been changed"
        r"|old(?:er)? (?:default|value|version|behaviou?r)s?)\b|^\W*before\s*,"
        r"|\b(?:twice|half (?:of )?the|\d+ times (?:the|as|more|larger|its)|\dx|same as|multiple of|relative to|per"
        r"|(?:more|less|greater|lower|higher|larger|smaller|longer|shorter|bigger) than (?:the|its|this|that)) ", _I)),
    ("clause", True, lazy_pattern(
        r"\b(?:i|we|i've|we've|i'm|we're|they|he|she)\b(?: \w+){0,2}? (?:set|use[ds]?|using|had|have|run|raised?"
        r"|changed?|configured?|increased?|decreased?|lower(?:ed)?|put|call(?:ed)?|go|went|switch(?:ed)?|bump(?:ed)?"
        r"|tried|try|reduced?)\b|\b(?:my|our|mine|ours)\b", _I)),
    ("value", False, lazy_pattern(
        r"\b(?:e\.g\.|for (?:example|instance)|such as|(?<!i )suppose|imagine|let's say|say,|examples?)(?=\W)"
        r"|\blike\b(?= (?:this|`|\d))", _I)),
)  # fmt: skip
_HEDGED = lazy_pattern(
    r"\b(?:maybe|perhaps|i (?:think|guess|suppose|believe|assume)|probabl[ye]|approximately|roughly|recommend\w*"
    r"|typically|usually|normally|generally|often|might|apparently|seems?|(?:about|around) (?=\d|`))\b", _I,
)  # fmt: skip
# A condition under which nobody set anything, or anybody would, is none.
_NOT_CONDITIONS = lazy_pattern(
    r"\b(?:if|when|unless)\s+(?:(?:it|this|that|the|is|are|option|value|setting|argument|parameter|flag|key|variable|one"
    r"|a|you|explicitly|`[^`\n]{1,60}`)\s+){0,4}?(?:not|un\w+|omitted|missing|absent|empty|otherwise|do not|don't|isn't"
    r"|set|given|specified|overridden|changed|provided|configured|no|needed|necessary|desired|wanted|required"
    r"|you (?:want|need|wish|like))\b(?:\s+(?:set|given|specified|provided|configured|passed|defined|supplied))?",
    _I,
)
_STOPS = lazy_pattern(r"[.;]\s|\sbut\s|,\s(?:and|so|it|i|we)\s", _I)
_CLAUSE_BREAK = lazy_pattern(r"[,;]\s|\s\(|\s[-–—]\s|\s(?:but|while|whereas|although|and i|and we|so)\s", _I)


def qualifiers_of(
    text: str, sentence: tuple[int, int], at: int, end: int, *, talk: bool
) -> tuple[Qualifier, ...] | None:
    """Return reasons why a value may not hold for everybody; ``None`` if it is not a fact about the present.

    Args:
        at: the start of the statement, which is its name or its value. ``end`` is the offset after its value.
        talk: whether the sentence is in a thread. Plans and the speaker's own settings are then checked too.
    """
    begin, stop = sentence
    first = max((match.end() for match in _CLAUSE_BREAK.finditer(text, begin, at)), default=begin)
    following = _CLAUSE_BREAK.search(text, end, stop)
    clause = text[first : following.start() if following else stop]
    parts = {"sentence": text[begin:stop], "clause": clause, "value": text[begin:end]}
    if any(pattern.search(parts[part]) for part, is_talk, pattern in _NOT_MEANT if talk or not is_talk):
        return None
    found: list[Qualifier] = ["hedged"] if _HEDGED.search(clause) else []
    plain = _NOT_CONDITIONS.sub(lambda match: " " * len(match[0]), parts["sentence"])
    opened = plain[: at - begin].lstrip(" *_>#+-\n")
    near = plain[max(0, at - begin - 40) : end - begin] + _STOPS.split(plain[end - begin :][:80])[0]
    if _CONDITION.match(opened) or _CONDITION.search(near):
        found.append("conditional")  # it opens the sentence, or stands by the value
    return tuple(found)
