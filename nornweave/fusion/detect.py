"""What contradicts what: claims of one thing with values that cannot both be true (PIPELINE, stage 4).

Precision goes before recall: a claim is compared only when it is stated as a fact about now, and two of them contradict
each other only when attribute, dimension and subject agree and the values do not. ``agreement`` says whether two claims
speak of one thing, ``compatible`` whether both values can hold, ``opposition`` reads sentences that hold no claim.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from nornweave.claims.passage import Passage
from nornweave.claims.vocabulary import stem
from nornweave.fusion.agreement import Sameness, alike, plain_attribute, subject_of
from nornweave.fusion.candidates import COMPARED_MOODS, MAX_COMPARED, blocks_of, candidates, ground, where
from nornweave.fusion.compatible import agree, allows, families_of, family_of, is_loose
from nornweave.fusion.grounds import NOWHERE, Ground
from nornweave.fusion.opposition import oppositions
from nornweave.fusion.records import Detector, Disagreement, TaggedItem
from nornweave.fusion.wording import shown, shown_all, words_of
from nornweave.types import Claim

MIN_CONFIDENCE = 0.35
"""Below this, two claims that differ are taken to be about two things."""
VAGUE = frozenset({"limit", "minimum", "count", "size", "default", "rate"})
VAGUE_CONFIDENCE = 0.7
"""What it takes where the attribute says what kind of number it is, but not of what."""
VERSION_CONFIDENCE = 0.5
"""Everything has a version, and pages name those of many things."""
NEVER = 2.0
EVENT_CONFIDENCE = 0.45
"""Much happens, and every second page has a date."""
SWITCH_CONFIDENCE = 0.6
"""Much can be switched on and off, and one word in common is little."""
LOOSE_CONFIDENCE = 0.7
"""What it takes where two attributes have different names, of which one is vague; and two topics of weight."""
MIN_AGREEMENT = 0.35
"""From this on, two claims of one value are taken to be one statement, which then contradicts nobody."""
SETTLED = 0.7
"""A claim that finds its like is settled, unless it speaks far more surely of the thing that it contradicts."""
ONE_OCCASION = 0.9
"""How sure one must be of one thing for a 4xx to contradict a 5xx."""
TEXT_ITEMS = 8
"""Items of which sentences are read, the best first: reading costs more than comparing claims."""
SAME_FOLDER = 0.06
"""What it adds that the file or a folder of one is called like a folder of the other."""
SAME_PLACE = 0.1
"""What a shared file or function name adds to the confidence that two claims speak of one thing."""

_KINDS = {"date": Detector.TEMPORAL_CONTRADICTION, "support": Detector.NEGATION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two claims that cannot both be true.

    Attributes:
        entity, attribute: about what; words for people.
        explanation: one sentence that names both values.
        confidence: that both speak of one thing, in [0, 1].
    """

    detector: Detector
    entity: str
    attribute: str
    explanation: str
    confidence: float


@dataclass(frozen=True, slots=True)
class _Clash:
    """The surest contradiction between the claims of two items, and every value that takes part."""

    pair: tuple[Claim, Claim]
    same: Sameness
    values: tuple[tuple[Claim, ...], tuple[Claim, ...]]
    confidence: float

    def difference(self, places: tuple[str, str] | None = None) -> Difference:
        """Put it in words; without places the values stand alone."""
        a, b = self.pair
        attribute = words_of(a.attribute)
        entity = _entity(a, b, self.same)
        if places:
            left, right = (shown_all(values) for values in self.values)
            explanation = f"{places[0]} says {attribute} {left}; {places[1]} says {right}"
        else:
            explanation = f"{entity}: {attribute} {shown(a)} on one side, {shown(b)} on the other"
        detector = _KINDS.get(a.kind, Detector.SAME_ENTITY_DIVERGENCE)
        return Difference(
            detector=detector,
            entity=entity,
            attribute=a.attribute,
            explanation=explanation,
            confidence=self.confidence,
        )


def find_disagreements(
    items: Sequence[TaggedItem], *, min_confidence: float = MIN_CONFIDENCE, weights: Mapping[str, float] | None = None
) -> tuple[Disagreement, ...]:
    """Return the pairs of items of different domains that contradict each other.

    Args:
        items: in any order; their places in it are what ``Disagreement.first`` and ``second`` mean.
        min_confidence: in [0, 1].
        weights: topic → how much it says, in [0, 1]; of topics that are missing nothing is known.

    Returns:
        At most one per pair, the most confident one, of claims before one of sentences; by ``first``, then ``second``.
    """
    best: dict[tuple[int, int], Disagreement] = {}
    for one in (*_by_claims(items, weights), *_by_sentences(items)):
        if one.confidence >= min_confidence:
            best.setdefault((one.first, one.second), one)
    return tuple(best[pair] for pair in sorted(best))


def disagree(a: Claim, b: Claim, *, weights: Mapping[str, float] | None = None) -> Difference | None:
    """Compare two claims by themselves; what else their documents say is not known here, see ``clash``.

    Args:
        weights: as for ``find_disagreements``.

    Returns:
        ``None`` if they agree, cannot be compared, or hardly speak of one thing.
    """
    return clash((a,), (b,), weights=weights)


def clash(
    left: Sequence[Claim], right: Sequence[Claim], *, weights: Mapping[str, float] | None = None
) -> Difference | None:
    """Compare what two passages claim: a claim that the other side repeats contradicts nothing there.

    Returns:
        The surest contradiction, ``None`` without one.
    """
    mine, theirs = _by_family(left), _by_family(right)
    clashes = (_clash(mine[family], theirs[family], weights) for family in sorted(mine.keys() & theirs.keys()))
    found = [one.difference() for one in clashes if one]
    return max(found, key=lambda one: (one.confidence, one.explanation), default=None)


def _by_family(claims: Iterable[Claim]) -> dict[str, list[Claim]]:
    found: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        if claim.mood in COMPARED_MOODS:
            for family in families_of(claim):
                found[family].append(claim)
    return found


def _clash(
    left: Sequence[Claim],
    right: Sequence[Claim],
    weights: Mapping[str, float] | None,
    grounds: tuple[Ground, Ground] = (NOWHERE, NOWHERE),
) -> _Clash | None:
    """Find the surest contradiction among claims of one family; claims that find their like are settled."""
    same_place = grounds[0].same_place(grounds[1])
    bonus = SAME_PLACE if same_place else SAME_FOLDER if grounds[0].same_folder(grounds[1]) else 0.0
    differing: list[tuple[Sameness, Claim, Claim]] = []
    settled: dict[int, float] = {}
    rights = [(claim, subject_of(claim)) for claim in right]
    for (a, about_a), (b, about_b) in product([(claim, subject_of(claim)) for claim in left], rights):
        by_name = about_a.family and about_a.family == about_b.family
        if not (same_place or by_name) and about_a.specific.isdisjoint(about_b.specific):
            continue
        agreed = _agree(a, b)
        if agreed is None:
            continue
        same = alike(about_a, about_b, weights, grounds)
        if agreed and same.score >= MIN_AGREEMENT:
            settled.update({id(one): max(settled.get(id(one), 0.0), same.score) for one in (a, b)})
        elif not agreed and same.score and same.score + bonus >= _needed(a, b, same, near=bonus > 0):
            differing.append((same, a, b))
    open_ones = [
        (same, a, b)
        for same, a, b in differing
        if max(settled.get(id(a), 0.0), settled.get(id(b), 0.0)) < SETTLED * same.score
    ]
    comparable = [one for one in open_ones if _of_one_class(*one)]
    if not comparable:
        return None
    same, a, b = max(comparable, key=lambda one: (one[0].score, one[1].statement, one[2].statement))
    values = ({one.value: one for _, one, _ in open_ones}, {other.value: other for _, _, other in open_ones})
    score = round(min(1.0, same.score + bonus), 3)
    return _Clash((a, b), same, (tuple(values[0].values()), tuple(values[1].values())), score)


def _needed(a: Claim, b: Claim, same: Sameness, *, near: bool = False) -> float:
    """Return how sure one has to be: more where the attributes say what kind of number it is, but not of what."""
    if plain_attribute(a) != plain_attribute(b) and (is_loose(a) or is_loose(b)):
        if family_of(a) == family_of(b) or _is_longer_name(plain_attribute(a), plain_attribute(b)):
            return VERSION_CONFIDENCE
        return LOOSE_CONFIDENCE if len(same.shared) > 1 else 1.0
    if a.attribute in VAGUE and a.unit is None and len(same.shared) < 3:
        return VERSION_CONFIDENCE if _counts_the_same(a, b, same) else VAGUE_CONFIDENCE
    if a.kind == "date":
        return EVENT_CONFIDENCE
    if a.kind == "http_status" and a.value[:1] == "2" and len(same.shared) < 2 and a.entity != b.entity:
        return NEVER  # what succeeds answers 200, 201 or 204 by what it does; one word in common does not tell
    if a.kind == "version":
        return VERSION_CONFIDENCE if a.attribute == "version" or near or len(same.shared) > 1 else NEVER
    return SWITCH_CONFIDENCE if a.kind == "switch" and len(same.shared) < 2 else MIN_CONFIDENCE


def _counts_the_same(a: Claim, b: Claim, same: Sameness) -> bool:
    """Tell whether the thing that one side counts names the other: ``MAX_GUESTS``, ``15 guests``."""
    return any(stem(unit.rpartition(" ")[2]) in same.shared for unit in (a.unit, b.unit) if unit)


def _is_longer_name(a: str, b: str) -> bool:
    """Tell whether one name is the other with more words before it: ``refresh buffer``, ``token refresh buffer``."""
    short, long = sorted((a.split(), b.split()), key=len)
    return len(short) > 1 and long[-len(short) :] == short


def _of_one_class(same: Sameness, a: Claim, b: Claim) -> bool:
    """Tell whether two status codes blame the same side: 422 is the caller's fault and 503 the service's.

    Where both name the same thing and the same occasion (an overloaded planner) they may differ in that, too.
    """
    if a.kind != "http_status" or a.value[:1] == b.value[:1]:
        return True
    return len(same.shared) > 1 and same.score >= ONE_OCCASION


def _agree(a: Claim, b: Claim) -> bool | None:
    if a.value == b.value and a.unit == b.unit:
        return True
    if a.mood == "range":
        return allows(a, b) or None
    return (allows(b, a) or None) if b.mood == "range" else agree(a, b)


def _entity(a: Claim, b: Claim, same: Sameness) -> str:
    named = sorted((claim.entity for claim in (a, b) if claim.entity), key=lambda name: (len(name), name))
    return named[0] if named else " ".join(same.shared)


def _by_claims(items: Sequence[TaggedItem], weights: Mapping[str, float] | None) -> Iterator[Disagreement]:
    best: dict[tuple[int, int], _Clash] = {}
    blocks = list(blocks_of(items))
    bound = MAX_COMPARED // max(1, len(blocks))
    for group in blocks:
        for first, second in candidates(group, items, weights, bound):
            found = _clash(group[first], group[second], weights, (ground(items[first]), ground(items[second])))
            known = best.get((first, second))
            if found and (known is None or _surer(found, known)):
                best[first, second] = found
    yield from (_disagreement(items, pair, best[pair]) for pair in sorted(best))


def _surer(found: _Clash, known: _Clash) -> bool:
    keys = ((one.confidence, one.pair[0].attribute, one.pair[0].statement) for one in (found, known))
    return next(keys) > next(keys)


def _disagreement(items: Sequence[TaggedItem], pair: tuple[int, int], found: _Clash) -> Disagreement:
    difference = found.difference((where(items[pair[0]]), where(items[pair[1]])))
    return Disagreement(
        first=pair[0],
        second=pair[1],
        detector=difference.detector,
        entity=difference.entity,
        attribute=difference.attribute,
        claims=found.pair,
        explanation=difference.explanation,
        confidence=difference.confidence,
    )


def _by_sentences(items: Sequence[TaggedItem]) -> Iterator[Disagreement]:
    """Read the sentences of the best items; order decides nothing but the places."""
    ordered = sorted(range(len(items)), key=lambda place: (-items[place].score, items[place].item.chunk_id, place))
    chosen = sorted(ordered[:TEXT_ITEMS])
    for first, second, found in oppositions({place: _passage(items[place]) for place in chosen}):
        said = (
            f'{where(items[place])} says "{text}"' for place, text in zip((first, second), found.texts, strict=True)
        )
        yield Disagreement(
            first=first,
            second=second,
            detector=found.detector,
            entity=" ".join(found.subject),
            attribute="statement",
            claims=None,
            explanation="; ".join(said),
            confidence=found.confidence,
        )


def _passage(tagged: TaggedItem) -> Passage:
    citation = tagged.item.citation
    return Passage(
        text=tagged.item.content,
        domain=tagged.source_domain,
        path=citation.source_path,
        title=citation.title,
        section=citation.section,
        timestamp=citation.timestamp,
    )
