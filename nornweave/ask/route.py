"""Choose the domains of a query: the named ones, else all; then weigh them by the answers of their indexes.

Only a query that says where to look (``in the docs``, ``#payments-oncall``, ``which paper``) may ask fewer domains than
there are. Other words of a query (of programs, of people, of papers) tell no more than the scores of
the domains (docs/recall.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

from nornweave.ask.search.fan_out import Recaller
from nornweave.ask.search.history import asks_for_past
from nornweave.ask.search.question import Question
from nornweave.core.errors import QueryError
from nornweave.core.types import Domain

NEUTRAL = 0.5
# Where to look is said at the start of a query; the rest of a long one is pasted.
MAX_CUED_CHARACTERS = 1000
# Log-odds of a domain that a query names.
NAMED_WEIGHT = 4.0
# A domain this far behind the first is left out: one that is named leads one that is not by 0.68 and more.
CLEAR_LEAD = 0.65
# How much evidence counts: a domain whose evidence is 0.25 above the mean has its odds multiplied by e.
EVIDENCE_GAIN = 4.0
# How a query names a domain; case counts only inside ``(?-i:…)``.
NAMED: Mapping[Domain, re.Pattern[str]] = {
    domain: re.compile(pattern, re.IGNORECASE | re.VERBOSE)
    for domain, pattern in {
        Domain.CODE: r"""\b(?:in|from|of|with|and|than|does|read|search) \s+ (?:the|our|this|your) \s+ (?:source\s+)?
        (?:code\b(?!\s+(?:of|review|\d))|codebase|repo(?:sitory)?\b)|\bsource\s+code\b""",
        Domain.DOCUMENTATION: r"""\b(?:in|by|from|to|per|do|does|our|of|say) \s+ (?:the|our|your) \s+ (?:\w+\s+){0,2}?
        (?:docs|documentation|manual\b(?!\s+\w)|handbook|wiki|readme|changelog|run-?book|release\s+notes|adrs?)\b""",
        Domain.CONVERSATIONS: r"""(?<![\w/&\#])\#(?!(?:include|define|pragma|ifdef|ifndef|endif|region|
        [0-9a-f]{3}(?:[0-9a-f]{3})?)\b)[a-z][\w-]{2,}|
        \b(?:in|on|from|over|during)\s+(?:the\s+|a\s+|our\s+)?(?:slack|chats?|(?:\w+\s+)?meeting|stand-?up|
        conversations?|transcripts?)\b(?!\s+(?:api|app|bot|integration|client|model|endpoint)s?\b)|
        \b(?:slack|discussion|issue|e?-?mail)\s+threads?\b|\bslack\s+channels?\b""",
        Domain.RESEARCH: r"""\b(?:which|what|recent|research|published|scientific)\s+papers?\b|
        \b(?:in|from|of|by|does)\s+the\s+papers?\b(?!\s+(?:size|tray|trail|jam|form|invoice|receipt))|\bpapers\s+(?:on|about|that|which)\b|
        \b(?:in|from)\s+the\s+literature\b|\bpreprints?\b|\bstud(?:y|ies)\s+(?:show|find|found|report|suggest|compare)\w*|
        \barxiv\b|\bdoi:""",
    }.items()
}


A = TypeVar("A", bound=Recaller)


def choose_agents(question: Question, agents: Mapping[Domain, A], max_sources: int = len(Domain)) -> dict[Domain, A]:
    """Return the agents to ask, which are those of the question's ``domains``.

    Without ``domains``, they are those of the domains that ``choose_domains`` returns or that a filter names.

    Raises:
        QueryError: a domain is not served, a filter is wrong, or a filter is set on a domain that is not asked.
    """
    for domain in question.domains or ():
        if domain not in agents:
            raise QueryError("domains", f"{domain.value!r} is not served; there are: {', '.join(agents)}")
    allowed = question.domains or tuple(agents)
    # A filter names its domain: whoever sets one wants that domain asked, whatever the words say.
    chosen = question.domains or {
        *choose_domains(_signals_of(question.text), allowed, max_sources),
        *(set(question.filters) & set(allowed)),
    }
    for domain in question.filters:
        if domain not in chosen:
            names = ", ".join(agent for agent in agents if agent in chosen)
            raise QueryError(f"filters.{domain.value}", f"the domain is not asked; asked are: {names}")
        agents[domain].conditions(question.filters[domain])
    return {domain: agent for domain, agent in agents.items() if domain in chosen}


def _signals_of(text: str) -> Mapping[Domain, float]:
    """Return how strongly a query names each domain.

    For a question about the past, documentation counts at least as much as code, because it contains the changelogs.
    """
    signals = domain_signals(text)
    if not asks_for_past(text):
        return signals
    return {**signals, Domain.DOCUMENTATION: max(signals[Domain.DOCUMENTATION], signals[Domain.CODE])}


@lru_cache(maxsize=256)
def domain_signals(text: str) -> Mapping[Domain, float]:
    """Return how strongly a query names each domain.

    ``signal(d) = σ(w(d) − mean(w))`` with ``w(d) = 4`` if the text names the domain, else 0.

    Returns:
        The signal of every domain, in [0, 1]. If the text names no domain, all signals are 0.5.
    """
    start = text[:MAX_CUED_CHARACTERS]
    weights = {domain: NAMED_WEIGHT if NAMED[domain].search(start) else 0.0 for domain in Domain}
    mean = math.fsum(weights.values()) / len(weights)
    return MappingProxyType({domain: _sigmoid(weight - mean) for domain, weight in weights.items()})


def combine_signals(cues: Mapping[Domain, float], evidence: Mapping[Domain, float]) -> Mapping[Domain, float]:
    """Combine the signals of the words with the evidence of the indexes.

    ``logit signal(d) = logit cue(d) + 4 · (evidence(d) − mean(evidence))``: odds multiply, as for independent hints.
    Equal evidence changes nothing; a domain without evidence (not searched, timed out) keeps its cue.

    Args:
        cues: from ``domain_signals``; a domain that is missing counts as 0.5.
        evidence: in [0, 1], comparable between domains: the calibrated score of a domain's best item.

    Returns:
        The signal of every domain, in [0, 1].
    """
    mean = math.fsum(evidence.values()) / len(evidence) if evidence else 0.0
    return MappingProxyType(
        {
            domain: _sigmoid(_logit(cues.get(domain, NEUTRAL)) + EVIDENCE_GAIN * (evidence.get(domain, mean) - mean))
            for domain in Domain
        }
    )


def choose_domains(
    signals: Mapping[Domain, float], allowed: Collection[Domain] = tuple(Domain), max_sources: int = len(Domain)
) -> tuple[Domain, ...]:
    """Return the domains to ask.

    These are all allowed domains, strongest signal first, ties in the order of ``Domain``; at most ``max_sources``
    (``FUSION_MAX_SOURCES``). Domains that are 0.65 or more behind the first are left out, because the query names
    another domain.
    """
    candidates = [domain for domain in Domain if domain in allowed]
    ordered = sorted(candidates, key=lambda domain: -signals.get(domain, NEUTRAL))
    if not ordered:
        return ()
    least = signals.get(ordered[0], NEUTRAL) - CLEAR_LEAD
    return tuple(domain for domain in ordered if signals.get(domain, NEUTRAL) > least)[:max_sources]


def _sigmoid(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds))


def _logit(probability: float) -> float:
    """Return the log-odds of a probability, which is first limited to 0.001 … 0.999."""
    certain = min(max(probability, 0.001), 0.999)
    return math.log(certain / (1.0 - certain))
