"""Judged sets made from users' feedback on shown items."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from evals.judgments import JudgedQuery, JudgedSet, Judgment, JudgmentOrigin, parse_place
from nornweave.ask.feedback import JudgedAnswer, ShownItem
from nornweave.core.types import Domain, canonical_json, digest, freeze

NAME = "feedback"
NOTE = (
    "What users said of items that they were shown: useful is grade 1, not useful is grade 0. Only what was shown can "
    "be judged, and what stands first is judged most: what the system never found is missing here, so measures of this "
    "set are too high, and favour the ranking that collected it. Compare one index with the next; do not read it as "
    "the share of what there is to find. Places are those of the time of the answer: lines move when documents change."
)

_Place = tuple[str, tuple[int, int] | None, str | None]
_Asked = tuple[str, str]


def sets_of_answers(answers: Iterable[JudgedAnswer]) -> Mapping[Domain, JudgedSet]:
    """Make a judged set per domain. The order of the answers makes no difference.

    A query is a text with the filters of the domain, however often it was asked. A place counts once per answer, as
    useful if any item there was: of several items of one document without lines, one may be. Between answers the
    majority counts, and a tie is no judgment. Queries with nothing useful keep their judgments of grade 0; a domain
    that has no others has no set, for there is nothing to measure.
    """
    votes: dict[Domain, dict[_Asked, Counter[tuple[_Place, bool]]]] = defaultdict(lambda: defaultdict(Counter))
    queries: dict[_Asked, JudgedQuery] = {}
    for answer in answers:
        for domain, said in _read_votes(answer).items():
            filters = freeze(answer.filters.get(domain.value, {}))
            text = answer.text.strip()
            query = JudgedQuery(id=digest(text, canonical_json(filters))[:12], text=text, filters=filters)
            asked = (query.text, query.id)
            queries[asked] = query
            votes[domain][asked].update(said.items())
    sets = {domain: _judged_set(votes[domain], queries) for domain in Domain if domain in votes}
    return MappingProxyType({domain: judged for domain, judged in sets.items() if judged.relevant})


def _judged_set(
    votes: Mapping[_Asked, Counter[tuple[_Place, bool]]], queries: Mapping[_Asked, JudgedQuery]
) -> JudgedSet:
    judgments = [judgment for asked in sorted(votes) for judgment in _judgments(queries[asked].id, votes[asked])]
    judged = {judgment.query_id for judgment in judgments}
    return JudgedSet(
        name=NAME,
        queries=tuple(queries[asked] for asked in sorted(votes) if queries[asked].id in judged),
        judgments=tuple(judgments),
        origin=JudgmentOrigin.FEEDBACK,
        note=NOTE,
    )


def _judgments(query_id: str, votes: Counter[tuple[_Place, bool]]) -> list[Judgment]:
    """Combine the votes of several answers to one query on each place."""
    places = {place for place, _ in votes}
    balance = {place: votes[place, True] - votes[place, False] for place in places}
    judgments = [Judgment(query_id, *place, grade=int(more > 0)) for place, more in balance.items() if more]
    return sorted(judgments, key=lambda judgment: judgment.key)


def _read_votes(answer: JudgedAnswer) -> Mapping[Domain, Mapping[_Place, bool]]:
    """Return one answer's votes on places, by domain."""
    said: dict[Domain, dict[_Place, bool]] = {}
    for item in answer.items:
        if item.chunk_id not in answer.votes or item.domain_id not in list(Domain):
            continue
        places = said.setdefault(Domain(item.domain_id), {})
        for place in _places(item):
            places[place] = places.get(place, False) or answer.votes[item.chunk_id]
    return {domain: places for domain, places in said.items() if places}


def _places(item: ShownItem) -> list[_Place]:
    """Return the places of an item: its messages, its lines, or its whole document.

    If an item has several messages, all are judged, because a chunk that holds any of them is a hit.
    """
    if item.message_ids:
        places: list[_Place] = [(item.source_path, None, message_id) for message_id in item.message_ids]
    else:
        places = [(item.source_path, item.line_range, None)]
    return [place for place in places if _can_be_written(place)]


def _can_be_written(place: _Place) -> bool:
    """Tell whether a judgment of a place can be written to a file of judged sets and read back unchanged."""
    key = Judgment("", *place, grade=1).key
    try:
        key.encode()
        return key.strip() == key and not set(key) & set("\t\r\n") and parse_place(key) == place
    except ValueError:  # half a character, or no place at all
        return False
