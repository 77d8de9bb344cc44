"""How a sentence means what it says: as a fact about now, or as history, plan, example, span or somebody else's.

Only stated claims can contradict each other, so the doubt goes to the other moods: a fact that is taken for history is
missed, history that is taken for a fact is a false alarm.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath

from nornweave.claims.lexicon import any_of, words_in
from nornweave.claims.passage import Passage
from nornweave.types import Mood

_EXAMPLE = any_of(
    r"\bfor (?:example|instance)\b|\be\.g\.|\bsuch as\b|\bexamples? (?:of|is|are|would|below|above)\b"
    r"|^examples?\b[^.]{0,40}:",
    r"\b(?:imagine|suppose|supposing|let's say|let us say|say you|assume|assuming|hypothetical(?:ly)?)\b|, say,",
    r"\b(?:simulat(?:ed?|es|ion|ions|ing)|experiments?|mocks?|mocked|dummy|fixtures?|sample (?:data|payload|output"
    r"|run))\b",
    r"\b(?:benchmarks?|benchmarked|load test(?:s|ed)?|test run|we (?:tested|tried|measured|ran|varied|compared)"
    r"|measured)\b",
)
_PLANNED = any_of(
    r"\?[\"')\]]*$|\?\s",
    r"\b(?:propos(?:e[ds]?|als?|ing)|suggest(?:s|ed|ions?|ing)?|would|could|might|maybe|perhaps|probably|possibly"
    r"|tentative(?:ly)?)\b",
    r"\b(?:plan(?:s|ned)? (?:to|for|is)|planning|roadmap|upcoming|intend(?:s|ed)? to|going to|gonna|todo|tbd|fixme"
    r"|wish(?:es)?|want(?:s|ed)? to)\b",
    r"\b(?:what|how) (?:if|about)\b|\bif (?:we|i) (?:\w+ )?(?!do not\b|don't\b)\w+(?:ed|pt)\b|\bwhy not\b|\bin "
    r"(?:the|a) future\b",
    r"\bfrom next\b|\bconsider(?:s|ed|ing)?\b|\b(?:is|are) (?:being )?(?:discussed|evaluated|considered)\b|\bi'd\b"
    r"|\bwe'd\b",
)
# Of the clause that says it alone: "due within 14 days, or they go into the next quarter".
_LATER = any_of(r"\bnext (?:month|year|quarter|sprint|version|generation|release)\b")
# In conversation these are wishes and guesses; documentation says "will" and "should" of what holds.
_UNSURE = any_of(
    r"\b(?:will|won't|'ll|shall|should|need(?:s)? to|i (?:think|guess|believe|suppose|suspect|assume|bet|wonder)"
    r"|not sure|iirc|afaik|imo|seems?|apparently|let's|lets|let me)\b",
    r"\b(?:i|we) (?:want|hope|prefer|like)\b|\bhopefully\b|\bestimates?\b|\btry\b",
)
_DECIDED = any_of(r"\b(?:decided|decision|agreed?|it is settled|confirmed)\b")
_HISTORY = any_of(
    r"\bbefore (?:version |release |v)?\d|\bprior to\b|\buntil (?:this|then|now|recently|version|release|v?\d)"
    r"|\bup to (?:version |v)\d",
    r"\bused to\b|\bprevious(?:ly)?\b|\bformer(?:ly)?\b|\bearlier (?:versions?|releases?)\b|\bold(?:er)? "
    r"(?:versions?|releases?|value|default|behaviou?r)\b",
    r"\boriginal(?:ly)?\b|\bhistorical(?:ly)?\b|\bin the past\b|\bback then\b|\bat the time\b|\bonce was\b|\bno"
    r" longer\b(?! support)|\banymore\b",
    r"\b(?:had been|has been|have been)\b|\b(?:yesterday|ago|last (?:week|month|year|night|spring|summer|autumn"
    r"|fall|winter|may|june))\b",
    r"^in (?:version |release |v)?\d+\.\d|\bwhen it was\b|\bin the incident\b|\bduring the outage\b",
    r"\b(?:lowered|raised|increased|reduced|decreased|changed|bumped|cut|doubled|halved) (?:it )?(?:from|to)\b",
)
_PAST = any_of(
    r"\b(?:was|were|had|did|went|got|gave|took|ran|saw|said|told|came|became|made|kept|sent|cost|lost|found|left|knew"
    r"|waited|answered|returned|used|showed|failed|asked|happened|started|stopped|tried|needed|wanted|shipped"
    r"|deployed)\b"
)
# A participle after these is no past: "is used", "can be returned", "are kept".
_PASSIVE = re.compile(
    r"\b(?:is|are|be|been|being|get|gets|not|it's|that's|they're|always|never|automatically|only|also|to be|or|and)\s+"
    r"(?:then |only |always |also |never |not |automatically |still )?"
    r"(?:used|kept|sent|lost|found|left|made|returned|answered|asked|needed|stopped|started|showed|deployed"
    r"|shipped|cost|run|cut"
    r"|tried|wanted|failed)\b",
    re.IGNORECASE,
)
_ATTRIBUTIVE = re.compile(
    r"(?:\b(?:the|a|an|each|every|any|all|of|by|for) (?:\w+ )?|\A)(?:failed|used|returned|made|kept|lost)\b",
    re.IGNORECASE,
)
_RANGE = any_of(
    r"\b(?:about|around|roughly|approximately|approx|circa|nearly|almost|typically|usually|generally|normally"
    r"|often|sometimes"
    r"|on average|in most cases|at the median|p\d\d|vary|varies|varying|depending on|depends on|or so|a few"
    r"|several)\b|~\s?\d",
    r"(?:%|\bper ?cent) of\b",
)
_FOREIGN = any_of(
    r"\b(?:other|another|some|many|most|different) (?:providers?|compan(?:y|ies)|systems?|apis?|vendors?"
    r"|platforms?|tools?|people|teams|projects|frameworks)\b",
    r"\bRFC ?\d+|\bthe (?:law|regulation|directive|standard|spec(?:ification)?|paper|study|authors?|survey"
    r"|literature)\b|\blaw's\b|\blegal(?:ly)?\b",
    r"\b(?:GDPR|PSD2|PCI|HIPAA)\b|\bet al\b|\baccording to\b|\belsewhere\b|\bon their side\b|\btheir (?:own )?"
    r"(?:api|docs?|limit|timeout|servers?|side|default)",
)
_REPORTED = any_of(
    r"\b(?:docs?|documentation|page|readme|manual|runbook|wiki|someone|somebody|customers?|merchants?|users?|they"
    r"|he|she|who)"
    r"(?: (?:still|also|all|only))? (?:say|tell|promise|claim|complain|think|mention|report|state|expect|read)s?\b",
    r"\b(?:temporar(?:y|ily)|one-off|exception|workaround|for the (?:hour|day|weekend)|for now|at the moment"
    r"|tonight)\b",
)
_ADVICE = re.compile(
    r"(?:please |just |then |and |to \w+ [^,]{0,60}, )?(?:set|increase|decrease|reduce|raise|lower|change"
    r"|configure|try|choose|pick|specify|pass|enter|type"
    r"|you (?:can |should )?(?:set|choose|enter)|bump|adjust|wait|sleep|ask|expect|make sure|consider|add|give|run"
    r"|start|create|select|replace|override)\b",
    re.IGNORECASE,
)
_ABROAD = re.compile(r"(?:In|With|On|At|Under|For) ([A-Z][\w+.#]+)\b|([A-Z][\w+.#]*\w)(?:'s)? (?!Pay\b|API\b)[a-z]")
_WEEKDAY = re.compile(
    r"\b(?:on|every|each|this|next|until|by) (?:mon|tues|wednes|thurs|fri|satur|sun)days?\b", re.IGNORECASE
)
# Names that open a sentence about somebody else's system, unless the document is about that system.
_OTHERS = words_in(
    """
    stripe paypal adyen visa mastercard amex aws amazon google gcp azure microsoft github gitlab
    bitbucket slack twitter facebook meta apple cloudflare fastly heroku netlify vercel datadog sentry
    twilio sendgrid shopify salesforce jira postgresql postgres mysql mariadb sqlite oracle mongodb
    redis memcached kafka rabbitmq nginx apache haproxy envoy kubernetes docker linux windows macos
    ubuntu debian chrome firefox safari edge python java node openssl curl
    """
)
_OLD_HEADINGS = re.compile(
    r"\b(?:history|changelog|change log|release notes|what's new|changes|background|alternatives?|considered"
    r"|rejected|context|before"
    r"|did not choose|previous|former|legacy|deprecated|old versions?|upgrading|migrat\w+)\b|^\[?v?\d+\.\d+"
    r"|^\W?\d{4}-\d\d-\d\d",
    re.IGNORECASE,
)
_EXAMPLE_HEADINGS = re.compile(
    r"\b(?:examples?|sample|tutorial|walkthrough|demo|benchmarks?|experiments?|results?|simulation)\b", re.IGNORECASE
)
_PLAN_HEADINGS = re.compile(
    r"\b(?:proposals?|roadmap|future|open questions?|ideas?|wish ?list|todo|next steps)\b", re.IGNORECASE
)
_OLD_STEMS = re.compile(
    r"(?:^|[-_. ])(?:changelog|changes|history|news|updates|releases?|release[-_]?notes?|whats[-_]?new|upgrading"
    r"|migration|migrating)(?:$|[-_. \d])",
    re.IGNORECASE,
)
_EXAMPLE_PLACES = re.compile(
    r"(?:^|/)(?:tests?|fixtures?|testdata|benchmarks?)/|(?:tutorial|example|sample)[^/]*$", re.IGNORECASE
)


def mood_of(
    sentence: str, passage: Passage, *, heading: str = "", clause: str = "", event: bool = False, day: bool = False
) -> Mood:
    """Say how a sentence is meant.

    Args:
        sentence: as people wrote it, on one line.
        heading: under which it stands, if the passage's own section does not say.
        clause: the part that says it, where the sentence has several; what others say in another part is theirs.
        event: whether it tells what happened (a release, a removal), so that the past tense is no history.
        day: whether it says on which day that was: the one thing that release notes say for good.
    """
    if passage.domain == "research" and not event:
        return "other"  # what papers say holds for what they studied
    place = _mood_of_place(passage.path, heading or passage.section or "", passage.domain)
    if _EXAMPLE.search(sentence) or (place == "example" and not event):
        return "example"
    conversation = passage.domain == "conversations"
    decided = bool(_DECIDED.search(sentence)) and not sentence.endswith("?")
    if not decided and (
        _PLANNED.search(sentence)
        or place == "planned"
        or _LATER.search(clause or sentence)
        or (conversation and _UNSURE.search(sentence))
    ):
        return "planned"
    if (place == "history" and not day) or (not event and (_HISTORY.search(sentence) or _is_past(clause or sentence))):
        return "history"
    if _is_of_others(clause or sentence, sentence, passage, heading) or (
        not event and conversation and _WEEKDAY.search(sentence)
    ):
        return "other"
    return "range" if not event and _RANGE.search(sentence) else "stated"


def _is_past(sentence: str) -> bool:
    if not _PAST.search(sentence):
        return False
    return bool(_PAST.search(_ATTRIBUTIVE.sub(" ", _PASSIVE.sub(" ", sentence))))


def _is_of_others(clause: str, sentence: str, passage: Passage, heading: str) -> bool:
    if _FOREIGN.search(sentence) or _REPORTED.search(clause) or _ADVICE.match(sentence):
        return True
    named = _ABROAD.match(sentence)
    if not named:
        return False
    name = (named[1] or named[2]).lower()
    about = f"{heading} {passage.section or ''} {passage.title or ''} {passage.path}".lower()
    return (bool(named[1]) or name in _OTHERS) and name not in about


@lru_cache(maxsize=1024)
def _mood_of_place(path: str, heading: str, domain: str) -> Mood:
    """Say what a document or section does to everything that stands in it."""
    last = heading.rpartition(" > ")[2]
    stem = PurePosixPath(path).stem if path else ""
    if domain != "conversations" and _OLD_STEMS.search(stem):
        return "history"
    if _PLAN_HEADINGS.search(last):
        return "planned"
    if _OLD_HEADINGS.search(last):
        return "history"
    if _EXAMPLE_HEADINGS.search(last) or (domain != "code" and _EXAMPLE_PLACES.search(path)):
        return "example"
    return "stated"
