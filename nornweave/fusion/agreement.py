"""How surely two claims speak of one thing: their entities, their topics, and the qualifiers that keep them apart.

A disagreement is only one if both sides mean the same thing, and that is where false alarms come from: thirty seconds
here and ten there are two timeouts far more often than one. So the burden of proof is here. Nothing in this module
looks at values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from nornweave.claims.vocabulary import FAMILIES, family_stems, split_name, stem
from nornweave.fusion.contrasts import CONTRASTS, NARROWED, USUAL, filled, sides_of, take_other_sides
from nornweave.fusion.grounds import GENERIC, NOWHERE, Ground
from nornweave.types import Claim

CACHED = 1 << 14

GENERIC_WEIGHT = 0.25
UNLIKE_NAMES = 0.8
"""What is left of the score when each name has a word of weight that the other side lacks."""
SAME_PLACE_ALONE = 0.3
"""How sure one is by file or function names alone (PIPELINE, "the same-entity check")."""
SPECIFIC = 0.5
"""A topic of at least this weight can show that two claims speak of the same thing."""
BOTH_ABOUT = 0.42
"""How sure one is that two claims that name an attribute and nothing else mean one thing, where file or headings of
both are about that attribute: ``connection_pool.go`` and a section "Connection pool"."""
ONE_ABOUT = 0.37
"""The same where one of them is, and the attribute is one of few in a project or both stand in one folder."""
FEW = frozenset({"rate_limit", "burst", "quota", "page_size", "pool_size"})
"""Attributes of which a project has few."""
_UNSAYING = frozenset({"limit", "minimum", "count", "size", "rate", "default", "date", "version", "enabled", "support"})


_VERSIONED = re.compile(r"(?<![\w.])v(\d+(?:\.\d+)*)(?![\w.])|\bversion (\d+(?:\.\d+)*)", re.IGNORECASE)
_DOTTED = re.compile(r"(?<![\w.])\d+(?:\.\d+)+(?![\w.])")
# "Production overrides it": whatever is said there holds only until somebody says otherwise.
_OVERRIDDEN = re.compile(r"\boverrid(?:e|es|den|ing)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a claim speaks of, ready to be compared.

    Attributes:
        specific, generic: its topics and the stems of its entity, by whether they say something.
        entity: the stems of its entity.
        sides: contrast → the sides that it takes.
        versions: versions that it names, unless it is about one.
        borrowed: stems of its entity that do not stand in its statement: keys, classes, headings or the path said them.
        family: its attribute, if that says by itself what a number is: ``rate_limit``, but not ``limit``.
        overridden: whether it says itself that something else goes before it.
    """

    specific: frozenset[str]
    generic: frozenset[str]
    entity: frozenset[str]
    sides: Mapping[int, frozenset[int]]
    versions: frozenset[str]
    borrowed: frozenset[str] = frozenset()
    family: str = ""
    overridden: bool = False

    def weight(self, weights: Mapping[str, float] | None) -> float:
        """Return how much its topics say together."""
        return _weigh(self.specific, self.generic, weights)


@dataclass(frozen=True, slots=True)
class Sameness:
    """How surely two claims mean one thing.

    Attributes:
        score: in [0, 1].
        shared: the topics that both have and that say something, sorted.
    """

    score: float
    shared: tuple[str, ...]


NOTHING = Sameness(0.0, ())


def plain_attribute(claim: Claim) -> str:
    """Return the attribute's name without what bounds it: ``max_batch_size`` is a batch size."""
    return claim.attribute.removeprefix("max_").removeprefix("min_")


@lru_cache(maxsize=CACHED)
def subject_of(claim: Claim) -> Subject:
    """Return what a claim speaks of; what its name says goes before what its sentence says."""
    entity = entity_stems(claim.entity)
    if plain_attribute(claim) not in FAMILIES:  # its name is words, and says what it is about
        entity |= entity_stems(claim.attribute)
    every = entity.union(claim.topics)
    named = sides_of(f"{claim.entity} {claim.attribute}")
    said = {at: sides for at, sides in sides_of(claim.statement).items() if not CONTRASTS[at].named}
    return Subject(
        specific=every - GENERIC,
        generic=every & GENERIC,
        entity=entity,
        sides={**said, **named} if named else said,
        versions=frozenset() if claim.kind == "version" else _versions(claim),
        borrowed=entity - _said_stems(claim.statement),
        family=_telling_family(claim),
        overridden=_OVERRIDDEN.search(claim.statement) is not None,
    )


def _telling_family(claim: Claim) -> str:
    plain = plain_attribute(claim)
    return claim.attribute if claim.kind == "number" and plain in FAMILIES and plain not in _UNSAYING else ""


@lru_cache(maxsize=CACHED)
def _said_stems(statement: str) -> frozenset[str]:
    return frozenset(stem(word) for word in split_name(statement))


def _versions(claim: Claim) -> frozenset[str]:
    """Return the versions that a claim names: those of its entity, else those of its statement."""
    return frozenset(_DOTTED.findall(claim.entity)) or _named_versions(claim.statement)


def sameness(a: Claim, b: Claim, weights: Mapping[str, float] | None = None) -> Sameness:
    """Say how surely two claims of one attribute speak of one thing.

    The words of each entity are looked for among the topics of the other claim; both should be found, weighed by how
    much a word says. Half of the score is that, half the overlap coefficient of the topics (Szymkiewicz-Simpson).

    Args:
        weights: stem → how much it says, in [0, 1], for instance its rarity in the corpus; stems that are missing, and
            all without weights, weigh 1, those that stand in every project's documents ``GENERIC_WEIGHT``.

    Returns:
        ``NOTHING`` if no topic of weight is shared or a qualifier keeps them apart.
    """
    return alike(subject_of(a), subject_of(b), weights)


def alike(
    a: Subject,
    b: Subject,
    weights: Mapping[str, float] | None = None,
    grounds: tuple[Ground, Ground] = (NOWHERE, NOWHERE),
) -> Sameness:
    """Say how surely two subjects are one; see ``sameness``.

    Args:
        grounds: what each stands under: it takes a side where the claim itself takes none, and stands in for topics
            where a claim names its attribute only.
    """
    specific = a.specific & b.specific
    if weights is not None:
        specific = frozenset(topic for topic in specific if weights.get(topic, 1.0) >= SPECIFIC)
    if not specific:
        return _alike_by_place(a, b, grounds)
    if apart(a, b, grounds):
        return NOTHING
    common = _weigh(a.specific & b.specific, a.generic & b.generic, weights)
    overlap = common / min(a.weight(weights), b.weight(weights))
    covers = [cover for cover in (_covered(a, b, weights), _covered(b, a, weights)) if cover is not None]
    score = 0.5 * overlap + 0.5 * (math.fsum(covers) / len(covers) if covers else overlap)
    if _unlike(a, b, grounds):
        score *= UNLIKE_NAMES
    return Sameness(min(score, 1.0), tuple(sorted(specific)))


def _alike_by_place(a: Subject, b: Subject, grounds: tuple[Ground, Ground]) -> Sameness:
    """Judge two subjects without a topic in common by what they stand under."""
    left, right = grounds
    same_name = left.same_name(right)
    if not same_name and not (a.family and a.family == b.family):
        return NOTHING
    if _unlike(a, b, grounds) or apart(a, b, grounds):
        return NOTHING
    score = max(SAME_PLACE_ALONE if same_name else 0.0, _alike_by_attribute(a, b, grounds))
    return Sameness(score, ()) if score else NOTHING


def _alike_by_attribute(a: Subject, b: Subject, grounds: tuple[Ground, Ground]) -> float:
    """Judge two claims that name their attribute and nothing else."""
    if not a.family or a.family != b.family or _own(a, grounds[0]) or _own(b, grounds[1]):
        return 0.0
    named = family_stems(a.family.removeprefix("max_").removeprefix("min_"))
    about = sum(not named.isdisjoint(ground.named) for ground in grounds)
    if about == 2:
        return BOTH_ABOUT
    few = a.family.removeprefix("max_") in FEW
    return ONE_ABOUT if about and (few or grounds[0].same_folder(grounds[1])) else 0.0


def _own(one: Subject, ground: Ground) -> frozenset[str]:
    """Return what the name of a claim says beside its attribute: not what path and headings lend it."""
    return (one.entity & one.specific) - (one.borrowed & ground.stems) - USUAL


def _unlike(a: Subject, b: Subject, grounds: tuple[Ground, Ground] = (NOWHERE, NOWHERE)) -> bool:
    """Tell whether each name has a word of weight that the other side lacks."""
    return bool(_own(a, grounds[0]) - b.specific and _own(b, grounds[1]) - a.specific)


def says_something(topic: str, weights: Mapping[str, float] | None) -> bool:
    """Tell whether a topic can show by itself that two claims speak of one thing."""
    return topic not in GENERIC and (weights is None or weights.get(topic, 1.0) >= SPECIFIC)


@lru_cache(maxsize=CACHED)
def entity_stems(entity: str) -> frozenset[str]:
    """Return the stems of an entity's words; single letters and digits name nothing, versions are compared apart."""
    return frozenset(stem(word) for word in split_name(entity) if len(word) > 1)


def _weigh(specific: frozenset[str], generic: frozenset[str], weights: Mapping[str, float] | None) -> float:
    if weights is None:
        return len(specific) + GENERIC_WEIGHT * len(generic)
    return math.fsum(
        (
            *(weights.get(topic, 1.0) for topic in specific),
            *(min(GENERIC_WEIGHT, weights.get(topic, 1.0)) for topic in generic),
        )
    )


def _covered(a: Subject, b: Subject, weights: Mapping[str, float] | None) -> float | None:
    """Return the share of an entity's weight that the other side has; ``None`` for one without words of weight."""
    if a.entity <= GENERIC:
        return None
    whole = _weigh(a.entity - GENERIC, a.entity & GENERIC, weights)
    found = _weigh(a.entity & b.specific, a.entity & b.generic, weights)
    return found / whole if whole else 0.0


def apart(a: Subject, b: Subject, grounds: tuple[Ground, Ground] = (NOWHERE, NOWHERE)) -> bool:
    """Tell whether a qualifier keeps two subjects apart: live and test, read and connect, one version and another."""
    if a.overridden or b.overridden or not _same_versions(a.versions, b.versions):
        return True
    left, right = a.sides, b.sides
    if grounds != (NOWHERE, NOWHERE) and left.keys() != right.keys():
        left, right = filled(left, right, grounds[0].text), filled(right, left, grounds[1].text)
    return take_other_sides(left, right) or _narrowed(a, b)


def _narrowed(a: Subject, b: Subject) -> bool:
    """Tell whether one is a part that the other does not speak of: a client's read timeout, a webhook's timeout."""
    for at in NARROWED:
        if (at in a.sides) != (at in b.sides):
            narrow, other = (a, b) if at in a.sides else (b, a)
            if (other.entity & other.specific) - narrow.entity - USUAL:
                return True
    return False


def apart_by_words(a: str, b: str) -> bool:
    """Tell whether a qualifier keeps two clauses apart."""
    return take_other_sides(sides_of(a), sides_of(b)) or not _same_versions(_named_versions(a), _named_versions(b))


def _same_versions(left: frozenset[str], right: frozenset[str]) -> bool:
    return not left or not right or any(_related(x, y) for x in left for y in right)


@lru_cache(maxsize=CACHED)
def _named_versions(statement: str) -> frozenset[str]:
    return frozenset(match[1] or match[2] for match in _VERSIONED.finditer(statement))


def _related(a: str, b: str) -> bool:
    return all(x == y for x, y in zip(a.split("."), b.split("."), strict=False))
