"""The cues that show which domain a query is about.

Weights are log-odds: 0.5 a hint, 1 a fair sign, 2 hardly ever elsewhere. They were set by what a cue means, and
checked, not fitted, on judged sets. A cue counts once, however often it occurs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from nornweave.core.types import Domain

# The weight of naming a domain: more than everything that a query can look like (``routing.MOST_FROM_LOOKS``).
NAMED = 4.0


@dataclass(frozen=True, slots=True)
class Cue:
    """A sign in the words of a query; ``weight`` in log-odds, ``NAMED`` if the query says where to look."""

    name: str
    weight: float
    pattern: re.Pattern[str]


def _cue(name: str, weight: float, pattern: str) -> Cue:
    """Compile a cue; case counts only inside ``(?-i:…)``."""
    return Cue(name, weight, re.compile(pattern, re.IGNORECASE | re.VERBOSE))


_CODE = (
    _cue(
        "names the code",
        NAMED,
        r"""\b(?:in|from|of|with|and|than|does|read|search) \s+ (?:the|our|this|your) \s+ (?:source\s+)?
        (?:code\b(?!\s+(?:of|review|\d))|codebase|repo(?:sitory)?\b)|\bsource\s+code\b""",
    ),
    _cue("code", 1.0, r"\b(?:code|codebase|source|implementation|commits?|pull\s+request|branch|repo(?:sitory)?)\b"),
    _cue(
        "code file",
        2.0,
        r"""\w\.(?:py|js|jsx|ts|tsx|go|rs|java|kt|c|cc|cpp|h|hpp|cs|rb|php|swift|scala|sh|sql|toml|ipynb)\b""",
    ),
    _cue(
        "programming language or library",
        1.5,
        r"""\b(?:python[23]?|java|javascript|typescript|golang|kotlin|rust|ruby|php|perl|cython|matlab|bash|numpy|
        pandas|scipy|matplotlib|django|flask|pytest|react|node\.?js|jquery|opencv|tkinter|sqlalchemy)\b|\bc\+\+|
        \bc\#""",
    ),
    _cue("identifier", 1.5, r"\b[a-z][a-z0-9]*_\w*[a-z]|\b_\w+\b|\b\w+\(\)"),
    _cue("camelCase", 1.0, r"(?-i:\b[a-z]+(?:[A-Z][a-z]+)+\b|\b[A-Z][a-z]+(?:[A-Z][a-z]+){2,}\b)"),
    _cue(
        "exception",
        1.25,
        r"""(?-i:\b[A-Z]\w+(?:Error|Exception)\b)|\b(?:traceback|stack\s?trace|segfault|segmentation\s+fault|
        null\s?pointer)\b""",
    ),
    _cue("operator", 1.0, r"[=!]=|=>|->|::|&&|\|\||[{};]\s*$|@\w+\("),
    _cue(
        "code construct",
        1.25,
        r"""\b(?:functions?|methods?|class(?:es)?|subclass|variables?|arguments?|arrays?|strings?|str|
        dict(?:ionar(?:y|ies))?|tuples?|integers?|ints?|floats?|bool(?:ean)?s?|enums?|structs?|pointers?|
        iterators?|lambda|decorators?|regex|constructor|callbacks?|mutex|dataframes?|ctypes|unit\s+tests?|deadlocks?|goroutines?|async|await|
        modules?|imports?)\b""",
    ),
    _cue(
        "data in a program",
        0.5,
        r"""\b(?:lists?|index|indices|columns?|rows?|json|csv|xml|html|files?|filename|director(?:y|ies)|folders?|
        path|null|none|nan|object|attributes?|matrix|matrices|vector|characters?|elements?|timestamps?|datetime|
        loop|keys?|values?|images?|plots?)\b""",
    ),
    _cue(
        "what programs do",
        0.5,
        r"""\b(?:pars(?:e|ing)|iterate|convert|cast|concat\w*|(?:de)?seriali[sz]e|split|sort(?:ed|ing)?|revers(?:e|
        ing)|append|flatten|refactor|compile|print|return(?:s|ing)?|remove|implement\w*|instantiate|override|
        count|check\s+if|get|set|read|write|truncate|loop)\b""",
    ),
    _cue(
        "place in code",
        1.5,
        r"""\b(?:which|what)\s+(?:function|class|method|file|module|handler|script)\b|\bwhere\s+(?:is|are|
        do(?:es)?)\b.{0,60}\b(?:defined|implemented|called|instantiated|imported)\b""",
    ),
)

_DOCUMENTATION = (
    _cue(
        "names the documentation",
        NAMED,
        r"""\b(?:in|by|from|to|per|do|does|our|of|say) \s+ (?:the|our|your) \s+ (?:\w+\s+){0,2}? (?:docs|
        documentation|manual\b(?!\s+\w)|handbook|wiki|readme|changelog|run-?book|release\s+notes|adrs?)\b""",
    ),
    _cue(
        "kind of document",
        1.5,
        r"""\b(?:docs?|documentation|guides?|tutorials?|manuals?|readme|changelog|release\s+notes|run-?books?|faq|
        adrs?|handbook|onboarding|policy|policies|glossary)\b""",
    ),
    _cue("may I", 1.0, r"\b(?:can|could|may|should|must)\s+(?:i|we|you|users?|customers?|one)\b|\bam\s+i\b"),
    _cue(
        "set up",
        0.75,
        r"""\b(?:configur\w+|install\w*|set\s?up|enabl\w+|disabl\w+|deploy\w*|upgrad\w+|migrat\w+|rotate|
        provision\w*|authenticat\w+|subscribe|integrat(?:e|ing))\b""",
    ),
    _cue(
        "limit or default",
        1.0,
        r"""\b(?:what|which|is|are|how)\b.{1,80}\b(?:maximum|max|minimum|default|quotas?|limits?)\b|\bhow\s+(?:many|
        much|large)\b.{1,80}\b(?:can|per|allowed|may|permitted)\b""",
    ),
    _cue(
        "is it supported",
        1.0,
        r"""\b(?:is|are|does|do|which|what)\b.{1,80}\b(?:support(?:s|ed)?|available|compatible|compliant|allowed|
        required|deprecated|version)\b""",
    ),
    _cue("definition", 0.75, r"^\W*(?:what|which)\s+(?:is|are)\s+(?!(?:his|her|he|she|the\s+name)\b)"),
    _cue(
        "service",
        0.75,
        r"""\b(?:api|apis|endpoints?|settings?|options?|environment\s+variables?|status\s+codes?|webhooks?|
        accounts?|instances?|clusters?|permissions?|encrypt\w*|credentials|console|regions?|storage|server|
        service|dashboard|plans?|pricing|sla|sdk|sso)\b""",
    ),
    _cue(
        "procedure",
        0.75,
        r"""\b(?:steps|procedure|prerequisites?|requirements?|best\s+practices?|troubleshoot\w*|how\s+do\s+(?:i|we|
        you))\b""",
    ),
    _cue(
        "product name",
        0.5,
        r"""(?-i:(?<![.?!]\s)(?<!^)\b[A-Z]\w+\s[A-Z][A-Za-z]*[A-Z]\w*\b|\b[A-Z]{2,}\s[A-Z][a-z]+)""",
    ),
)

# A person: a capitalised word where a question has its subject, before a verb that people do.
_PERSON = r"(?-i:[A-Z][a-z]+(?:\s[A-Z][a-z]+)?)"
_CONVERSATIONS = (
    _cue(
        "names the conversations",
        NAMED,
        r"""(?<![\w/&\#])\#(?!(?:include|define|pragma|ifdef|ifndef|endif|region|[0-9a-f]{3}(?:[0-9a-f]{3})?)\b)[a-z][\w-]{2,}|
        \b(?:in|on|from|over|during)\s+(?:the\s+|a\s+|our\s+)?(?:slack|chats?|(?:\w+\s+)?meeting|stand-?up|
        conversations?|transcripts?)\b(?!\s+(?:api|app|bot|integration|client|model|endpoint)s?\b)|
        \b(?:slack|discussion|issue|e?-?mail)\s+threads?\b|\bslack\s+channels?\b""",
    ),
    _cue(
        "person did",
        1.25,
        rf"""\b(?:did|does|do|has|have|had|is|was|were|are|will|would)\s+(?:{_PERSON}(?:,\s|\s(?:and|
        or)\s))?{_PERSON}(?:'s|`s)?\s(?!(?:supports?|require|allow|provide|include|handle|return|
        store)\b)(?-i:[a-z])""",
    ),
    _cue(
        "person's",
        0.75,
        r"""(?-i:\b[A-Z][a-z]+['’`]s\b)(?!\s+(?:disease|syndrome|law|theorem|sarcoma|lymphoma|test|algorithm))""",
    ),
    _cue("people and dates", 0.5, rf"\b(?:with|to|by|from|for|of)\s+{_PERSON}(?=\s*(?:\?|$|\son\b|\sin\b|\sand\b))"),
    _cue(
        "said",
        1.25,
        r"""\b(?:said|says?|saying|mention\w*|suggest(?:ed|s)?|recommend(?:ed|s)?|asked|told|talk(?:ed|ing)|
        discuss\w*|decid\w+|decision|agreed?|promised|announced|replied|complained|proposed|according\s+to|
        feels?|felt|thinks?|thought|opinion)\b""",
    ),
    _cue(
        "past event",
        1.0,
        r"""\b(?:what|when|where|who|whom|whose|why|how|which)\b.{0,80}\bdid\b|\bwhen\s+(?:was|were|has|is)\b|
        \bhow\s+(?:long|often|many\s+times)\s+(?:has|have|had|did|was|does)\b""",
    ),
    _cue("he or she", 1.0, r"\b(?:he|she|his|him|her|hers|himself|herself|someone|anyone|everyone)\b"),
    _cue("place to talk", 1.0, r"\b(?:slack|stand-?ups?|meetings?|retro(?:spective)?|on-?call)\b"),
    _cue("thread or channel", 0.5, r"\b(?:threads?|channels?)\b"),
    _cue("who", 0.75, r"^\W*(?:and\s+)?(?:who|whom|whose)\b"),
    _cue(
        "date",
        0.75,
        r"""\b(?:\d{1,2}(?:st|nd|rd|th)?\s+)?(?:january|february|march|april|june|july|august|september|october|
        november|december)\s+\d|\b\d{1,2}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:january|february|march|april|may|june|
        july|august|september|october|november|december)\b|\b(?:yesterday|today|last\s+(?:week|month|friday|
        monday|night|sprint)|recently|(?:mon|tues|wednes|thurs|fri)day)\b""",
    ),
    _cue(
        "we",
        0.75,
        r"""\b(?:did|have|had)\s+(?:we|the\s+team|they)\b|\bour\s+team\b|\bwe\s+(?:decide|agree|choose|chose|talk|
        discuss|drop)\w*""",
    ),
    _cue(
        "private life",
        0.5,
        r"""\b(?:friends?|wife|husband|partner|family|mother|mom|father|dad|sister|brother|kids?|birthday|hobb(?:y|
        ies)|trip|vacation|favorite|favourite|enjoys?|likes?|loves?|plans?\s+to|planning)\b""",
    ),
)

_RESEARCH = (
    _cue(
        "names the research",
        NAMED,
        r"""\b(?:which|what|recent|research|published|scientific)\s+papers?\b|\b(?:in|from|of|by|does)\s+the\s+papers?\b
        (?!\s+(?:size|tray|trail|jam|form|invoice|receipt))|\bpapers\s+(?:on|about|that|which)\b|
        \b(?:in|from)\s+the\s+literature\b|\bpreprints?\b|\bstud(?:y|ies)\s+(?:show|find|found|report|suggest|compare)\w*|
        \barxiv\b|\bdoi:""",
    ),
    _cue("citation", 2.0, r"\bet\s+al\b|\(\d{4}\)|\[\d{1,3}\]|\b10\.\d{4,}/"),
    _cue(
        "study",
        1.25,
        r"""\b(?:stud(?:y|ies)|trials?|randomi[sz]ed|cohorts?|meta-analys[ie]s|systematic\s+review|participants|
        patients?|placebo|in\s+vivo|in\s+vitro|hypothes[ie]s|evidence|empirical\w*|statistical\w*|
        significan(?:t|tly|ce)|p-values?|efficacy|prevalence|incidence|mortality|correlat\w+|associat(?:ed|ion)|
        risks?\s+(?:of|for|factors?)|susceptib\w+|researchers|experiments?|theorem|state[\s-]of[\s-]the[\s-]art|
        benchmarks?)\b""",
    ),
    _cue(
        "life science",
        1.25,
        r"""\b(?:cells?|cellular|proteins?|genes?|genom\w+|genetic\w*|receptors?|mutations?|mutants?|mice|mouse|
        rats?|humans?|cancers?|tumou?rs?|diseases?|infect\w+|virus(?:es)?|viral|bacteri\w+|therap\w+|
        treatments?|clinical\w*|dos(?:e|age)s?|dna|[mt]?rnas?|mirnas?|enzymes?|immun\w+|antibod\w+|antigens?|
        vaccin\w+|blood|brain|liver|lung|kidney|heart|bone|muscle|tissues?|membranes?|embryo\w*|stem|insulin|
        diabet\w+|obes\w+|women|adults|infants|deficien\w+|metaboli\w+|plasma|serum|surgery|hiv|aids|drug|drugs|
        inhibitors?|phosphorylat\w+|transcription\w*|chromosom\w+|chromatin|histones?|synap\w+|neuro\w+|
        cardi\w+)\b""",
    ),
    _cue(
        "scholarly word form",
        0.75,
        r"""\b\w{3,}(?:osis|itis|emia|aemia|omas?|cytes?|genesis|pathy|ology|statins?|mab|kinases?|proteases?|
        polymerases?|phages?|blasts?|genic|trophic|opathic|ylation|ergic)\b""",
    ),
    _cue(
        "effect",
        1.0,
        r"""\b(?:increas|decreas|reduc|inhibit|suppress|promot|activat|induc|enhanc|regulat|mediat|impair|stimulat|
        correlat|improv|lower|protect|accelerat|delay)(?:es|s|e|ed|ing)?\b""",
    ),
    _cue(
        "claim",
        1.0,
        r"""^(?!\s*(?:what|which|who|whom|whose|when|where|why|how|is|are|do|does|did|can|could|should|would|was|
        were|has|have|will|please|show|list|find|explain|i|we|my|our|you|
        in\s+what)\b)(?-i:\s*[A-Z0-9])[^?\n]{20,}\.\s*$""",
    ),
)

CUES: Mapping[Domain, tuple[Cue, ...]] = {
    Domain.CODE: _CODE,
    Domain.DOCUMENTATION: _DOCUMENTATION,
    Domain.CONVERSATIONS: _CONVERSATIONS,
    Domain.RESEARCH: _RESEARCH,
}
