"""Choose the domains of a query, from cues in its words and evidence from the indexes.

Signals are a soft prior. What a query looks like orders the domains and never leaves one out; only a query that names
where to look (``in the docs``, ``#payments-oncall``, ``which paper``) may ask fewer domains than there are.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

from nornweave.ask.route.signals import CUES, NAMED
from nornweave.ask.search.fan_out import Recaller
from nornweave.ask.search.question import Question
from nornweave.core.errors import QueryError
from nornweave.core.types import Domain

NEUTRAL = 0.5
# The default of ``FUSION_MAX_SOURCES``.
MAX_SOURCES = 4
# What a query is about shows at its start; the rest of a long one is pasted.
MAX_CUED_CHARACTERS = 1000
# What a query looks like counts this much at most, in log-odds; a domain that it names counts 4 (``NAMED``).
MOST_FROM_LOOKS = 3.0
# A domain this far behind the first is left out: looks lead by 0.64 at most, a named domain leads one of which the
# query shows no sign by 0.68 and more.
CLEAR_LEAD = 0.65
# How much evidence counts: a domain whose evidence is 0.25 above the mean has its odds multiplied by e.
EVIDENCE_GAIN = 4.0


A = TypeVar("A", bound=Recaller)


def choose_agents(question: Question, agents: Mapping[Domain, A], max_sources: int = len(Domain)) -> dict[Domain, A]:
    """Choose which agents to ask: those of the domains named, else of those that the words do not rule out.

    Raises:
        QueryError: a domain is not served, a filter is wrong, or one is set on a domain that is not asked and would be
            lost.
    """
    for domain in question.domains or ():
        if domain not in agents:
            raise QueryError("domains", f"{domain.value!r} is not served; there are: {', '.join(agents)}")
    allowed = question.domains or tuple(agents)
    # A filter names its domain: whoever sets one wants that domain asked, whatever the words say.
    chosen = question.domains or {
        *choose_domains(domain_signals(question.text), allowed, max_sources),
        *(set(question.filters) & set(allowed)),
    }
    for domain in question.filters:
        if domain not in chosen:
            names = ", ".join(agent for agent in agents if agent in chosen)
            raise QueryError(f"filters.{domain.value}", f"the domain is not asked; asked are: {names}")
        agents[domain].conditions(question.filters[domain])
    return {domain: agent for domain, agent in agents.items() if domain in chosen}


@lru_cache(maxsize=256)
def domain_signals(text: str) -> Mapping[Domain, float]:
    """Return how strongly the words of a query indicate each domain.

    ``signal(d) = σ(w(d) − mean(w))`` with ``w(d) = 4`` if the text names the domain, else the sum of the weights of the
    domain's cues in the text, 3 at most. No cue at all: 0.5 for every domain.

    Returns:
        Every domain, in [0, 1].
    """
    weights = {domain: _weight(text, domain) for domain in Domain}
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
        Every domain, in [0, 1].

    Raises:
        ValueError: a value is outside [0, 1].
    """
    for name, values in (("cues", cues), ("evidence", evidence)):
        for domain, value in values.items():
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name}: {domain.value} is {value}, allowed are 0 to 1")
    mean = math.fsum(evidence.values()) / len(evidence) if evidence else 0.0
    return MappingProxyType(
        {
            domain: _sigmoid(_logit(cues.get(domain, NEUTRAL)) + EVIDENCE_GAIN * (evidence.get(domain, mean) - mean))
            for domain in Domain
        }
    )


def choose_domains(
    signals: Mapping[Domain, float], allowed: Collection[Domain] | None = None, max_sources: int = MAX_SOURCES
) -> tuple[Domain, ...]:
    """Choose which domains to ask.

    All that are allowed, strongest signal first, ties in the order of ``Domain``; at most ``max_sources``
    (``FUSION_MAX_SOURCES``). Left out are domains that are 0.65 or more behind the first; among the signals of
    ``domain_signals`` these are the ones of which a query that names another domain shows no sign.

    Raises:
        ValueError: ``max_sources`` is below 1.
    """
    if max_sources < 1:
        raise ValueError(f"max_sources: {max_sources}, allowed are 1 and above")
    candidates = [domain for domain in Domain if allowed is None or domain in allowed]
    ordered = sorted(candidates, key=lambda domain: -signals.get(domain, NEUTRAL))
    if not ordered:
        return ()
    least = signals.get(ordered[0], NEUTRAL) - CLEAR_LEAD
    return tuple(domain for domain in ordered if signals.get(domain, NEUTRAL) > least)[:max_sources]


def _weight(text: str, domain: Domain) -> float:
    start = text[:MAX_CUED_CHARACTERS]
    shown = [cue.weight for cue in CUES[domain] if cue.pattern.search(start)]
    return NAMED if NAMED in shown else min(math.fsum(shown), MOST_FROM_LOOKS)


def _sigmoid(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds))


def _logit(probability: float) -> float:
    """Return the log-odds, of 0 and 1 as of 0.001 and 0.999: no cue is beyond doubt."""
    certain = min(max(probability, 0.001), 0.999)
    return math.log(certain / (1.0 - certain))
