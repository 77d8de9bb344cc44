"""Ask several domains at once, a compound question clause by clause, with one deadline for all of them.

``what is the retry limit and who owns the payment service?`` asks for two things in two places. A clause is recalled
alone, so it must make sense alone. A clause that needs the other (``and who wrote it?``), says little by itself (``when
and why``) or holds another clause (``who decides what is due and what is late``) keeps the question in one piece.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Protocol

from nornweave.ask.search.lanes import AgentKey, Lanes, P
from nornweave.ask.search.query import MAX_TOP_K
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import CoverageGap, Filters, RecallItem, RecallResponse
from nornweave.core.errors import NornWeaveError, QueryError
from nornweave.core.text.function_words import FUNCTION_WORDS
from nornweave.core.types import Domain
from nornweave.index.searching.conditions import Condition

MAX_CLAUSES = 3
# What is longer was pasted (a log, a page), not asked.
MAX_COMPOUND_CHARACTERS = 600
# "indoor air quality and are the doors locked": a topic instead of a question may stand first, if it is short.
MAX_TOPIC_WORDS = 5


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_AUXILIARIES = _words(
    "is are was were do does did can could should shall will would has have had may might must isn't aren't wasn't"
    " weren't don't doesn't didn't can't couldn't shouldn't won't wouldn't hasn't haven't"
)
_QUESTION_WORDS = _words("what how where when why who whose whom which whether")
_DETERMINERS = _words("the a an my our your any all some every each no")
# Words that point at something said before: a clause with one of them does not stand alone.
_POINTERS = _words(
    "it its itself they them their theirs he him his she her hers this that these those one ones same former latter"
    " both other others another such else instead too respectively there so then again above below"
)
# Words that say nothing without what they are of.
_GENERIC = _words(
    "default defaults maximum minimum max min value values limit limits version name names type types kind difference"
    " reason purpose cause effect result time size number way best status use used work works mean means many much"
    " long happen happens get need know go make exactly currently example examples rest"
)
_AUXILIARY = f"(?:{'|'.join(sorted(_AUXILIARIES))})"
_QUESTION = re.compile(
    rf"who\s+[\w./#-]+|(?:what|how|where|when|why|whose|whom|which)(?:'s|(?:\s+(?!to\b)[\w./#-]+){{0,3}}?\s+{_AUXILIARY})\b"
    rf"|which\s+[\w./#-]+\s+[\w./#-]+|{_AUXILIARY}\s+(?:the|a|an|my|our|your|there|any|all|some|we|i|you)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    rf"(?:please\s+)?(?:show|list|find|explain|describe|give|tell|name|compare)\b|{_AUXILIARY}\s", re.IGNORECASE
)
_CONNECTOR = re.compile(
    r"(?<=\?)\s+(?:(?:and|also|plus)\s+)?|[,;]?\s+(?:and\s+also|and|also|plus|&)\s+|;\s+", re.IGNORECASE
)
_QUOTED = re.compile(r"\"[^\"]*\"|`[^`]*`|“[^”]*”|«[^»]*»|\([^()]*\)|\[[^\[\]]*\]|(?<!\w)'[^']+'(?!\w)")
_CODE = re.compile(r"[{}=<>|\\]|::|->|\n[ \t]|^Traceback", re.MULTILINE)
_WORD = re.compile(r"[\w'./#-]*\w")


def split_clauses(text: str) -> tuple[str, ...]:
    """Split a compound question into clauses that can be asked one by one.

    If one of the clauses makes no sense alone, or there are more than three, the question stays whole.
    Quoted text, brackets and code are never cut. Deterministic, linear in the length of the text.

    Returns:
        Two or three parts of ``text`` in order, without the words that join them; or ``text`` as it is.
        A part does not split again.
    """
    if len(text) > MAX_COMPOUND_CHARACTERS or _CODE.search(text):
        return (text,)
    parts = _cut(text)
    clauses = [[word.lower() for word in _WORD.findall(part)] for part in parts]
    is_compound = (
        1 < len(parts) <= MAX_CLAUSES
        and _opens(parts[0], clauses[0])
        and not any(_QUESTION_WORDS.intersection(words[1:]) for words in clauses[:-1])
        and all(_stands_alone(words) for words in clauses[1:])
        and not any(_names(one) & _names(other) for one, other in pairwise(parts))
    )
    return tuple(parts) if is_compound else (text,)


def _cut(text: str) -> list[str]:
    """Return the parts of a text between connectors that are outside quotes and brackets and before a question."""
    protected = [match.span() for match in _QUOTED.finditer(text)]
    parts: list[str] = []
    start = 0
    for connector in _CONNECTOR.finditer(text):
        inside = any(low < connector.end() <= high for low, high in protected)
        if not inside and _QUESTION.match(text, connector.end()):
            parts.append(text[start : connector.start()].strip())
            start = connector.end()
    return [*parts, text[start:].strip()]


def _opens(text: str, words: Sequence[str]) -> bool:
    """Tell whether a compound question may begin with this text: a question, a request, or a short topic."""
    if not words or words[-1] in _AUXILIARIES | _DETERMINERS | {"of", "to", "and", "or", "between"}:
        return False
    is_topic = len(words) <= MAX_TOPIC_WORDS and not any(
        word in FUNCTION_WORDS - _DETERMINERS or word.endswith(("s", "ed")) for word in words
    )
    is_asked = _QUESTION.match(text) or _OPENING.match(text)
    return len([word for word in words if word not in FUNCTION_WORDS]) > 1 and (is_topic or bool(is_asked))


def _stands_alone(words: Sequence[str]) -> bool:
    specific = [word for word in words if word not in FUNCTION_WORDS | _AUXILIARIES | _QUESTION_WORDS | _GENERIC]
    return len(specific) > 1 and not _POINTERS.intersection(words)


def _names(text: str) -> set[str]:
    """Return the capitalised words after the first. Clauses that share such a name stay together."""
    words = [match[0].removesuffix("'s") for match in _WORD.finditer(text)]
    return {word for word in words[1:] if word[0].isupper() and word.lower() not in FUNCTION_WORDS}


log = logging.getLogger(__name__)

# Late answers are given this much beyond the deadline to hand over what they have.
GRACE_S = 0.02
# Each domain is asked for more items than are wanted: deduplication removes some and ranking moves others up. Up to ten
# wanted items the candidates are the same ones, so that the first five are the first five of ten.
SPARE_ITEMS = 5
USUAL_TOP_K = 10


class Recaller(Protocol):
    """An agent that can be asked, local or remote."""

    @property
    def agent_id(self) -> str:
        """The agent's name in answers and coverage gaps."""

    @property
    def domain(self) -> Domain:
        """The agent's domain."""

    def recall(self, question: Question) -> RecallResponse:
        """Answer a question from this domain alone."""

    def conditions(self, filters: Filters) -> tuple[Condition, ...]:
        """Return the conditions for filters of the domain; raises ``QueryError`` for a wrong filter."""


def one_a_domain(own: Mapping[Domain, Recaller], elsewhere: Sequence[Recaller]) -> dict[Domain, Recaller]:
    """Return one agent for each domain that can be asked, preferably the local one."""
    by_domain = {agent.domain: agent for agent in reversed(elsewhere)} | dict(own)
    return {domain: by_domain[domain] for domain in Domain if domain in by_domain}


def with_elsewhere(chosen: Mapping[Domain, Recaller], elsewhere: Sequence[Recaller]) -> dict[AgentKey, Recaller]:
    """Return all agents of the chosen domains.

    A domain may have a local agent and remote ones: all of them are asked. A remote agent with the same name as the
    local one is the same agent, and the local one answers.
    """
    agents: dict[AgentKey, Recaller] = {}
    for domain, first in chosen.items():
        others = [agent for agent in elsewhere if agent.domain is domain]
        if first not in others:
            agents[domain] = first
            others = [agent for agent in others if agent.agent_id != first.agent_id]
        agents |= {(domain, agent.agent_id): agent for agent in others}
    return agents


def recall_everywhere(
    question: Question, agents: Mapping[P, Recaller], lanes: Lanes
) -> tuple[dict[P, RecallResponse], tuple[CoverageGap, ...]]:
    """Ask several agents until all have answered, the deadline has passed, or only late remote agents are left.

    Returns:
        The answers, in the order of the agents, and a gap for each agent without an answer.

    Raises:
        QueryError: an agent refuses the query or its filters.
    """
    clauses = split_clauses(question.text)
    tasks = {place: partial(_recall, question, clauses, agent) for place, agent in agents.items()}
    futures = lanes.run(tasks, question.deadline.left_s + GRACE_S if question.deadline else None)
    responses: dict[P, RecallResponse] = {}
    gaps: list[CoverageGap] = []
    for place, future in futures.items():
        outcome = _outcome(future, question, None if isinstance(place, Domain) else lanes.budget_s)
        if isinstance(outcome, RecallResponse):
            responses[place] = outcome
        else:
            agent, is_elsewhere = agents[place], not isinstance(place, Domain)
            gaps.append(CoverageGap(agent.domain.value, agent.agent_id, outcome, is_elsewhere))
    return responses, tuple(gaps)


def merge_items(rankings: Sequence[Sequence[RecallItem]], top_k: int) -> tuple[RecallItem, ...]:
    """Merge rankings by calibrated scores. A chunk keeps its best score; ties follow the order of the rankings.

    Every ranking keeps its own order. So a smaller ``top_k`` returns the beginning of the same list.
    """
    best: dict[str, RecallItem] = {}
    for item in (item for ranking in rankings for item in ranking):
        known = best.get(item.chunk_id)
        if known is None or item.score > known.score:
            best[item.chunk_id] = item
    return tuple(sorted(best.values(), key=lambda item: -item.score)[:top_k])


def _recall(question: Question, clauses: Sequence[str], agent: Recaller) -> RecallResponse:
    """Return an agent's answer to the whole question, merged with answers to each clause while time is left."""
    widened = replace(question, top_k=min(max(question.top_k, USUAL_TOP_K) + SPARE_ITEMS, MAX_TOP_K))
    whole = agent.recall(widened)
    if len(clauses) < 2:
        return whole
    responses, late = [whole], []
    for clause in clauses:
        if question.deadline and not question.deadline.left_ms:  # what has arrived is worth more than one more clause
            late.append(f"no time left to ask for {clause!r} alone")
        else:
            responses.append(agent.recall(replace(widened, text=clause)))
    return replace(
        whole,
        items=merge_items([response.items for response in responses], widened.top_k),
        notices=(*dict.fromkeys(notice for response in responses for notice in response.notices), *late),
    )


def _outcome(future: Future[RecallResponse], question: Question, budget_s: float | None) -> RecallResponse | str:
    """Return the answer, or the reason why there is none.

    ``budget_s`` is how long a remote agent was waited for after the other agents; ``None`` for a local agent.
    """
    timeout = f"timeout after {question.deadline.timeout_ms}ms" if question.deadline else "no answer"
    if not future.done():
        future.cancel()
        if budget_s is not None and (question.deadline is None or question.deadline.left_ms):
            return f"no answer in time: after the others it was given {budget_s:.3g} s"
        return timeout
    error = future.exception()
    if isinstance(error, QueryError):
        raise error
    if isinstance(error, NornWeaveError):
        return str(error)
    if error is not None:
        log.error("an agent failed unexpectedly", exc_info=error)
        return f"failed unexpectedly ({type(error).__name__}); the log says where"
    response = future.result()
    late = not response.items and set(response.retrieval.values()) == {"timeout"}
    return timeout if late else response
