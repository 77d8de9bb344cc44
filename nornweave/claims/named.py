"""A name and the literal that it is given, in code or in configuration → a claim."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nornweave.claims import vocabulary
from nornweave.claims.literals import UNIT_NAMES, Quantity, quantity, written_quantity
from nornweave.claims.passage import Passage
from nornweave.claims.statuses import STATUS_CODES
from nornweave.claims.values import canonical_number, normal_date, normal_version
from nornweave.types import Claim, ClaimKind, Mood, Span

MAX_STATEMENT = 240
MAX_TOPICS = 12

_TIMES = frozenset({"s", "month"})
# ``ESCALATE_AFTER_MINUTES``, ``CHECK_EVERY_SECONDS``, ``REFUND_WITHIN_DAYS``.
_TIMED = {"after": "delay", "every": "interval", "within": "window", "hold": "lifetime"}
_TRUE = frozenset({"true", "yes", "on"})
_FALSE = frozenset({"false", "no", "off"})
_OFF_WORDS = frozenset({"disabled", "disable", "disables", "no", "skip", "without"})

# Attributes whose value is a word; of all others only numbers are taken.
TEXT_ATTRIBUTES = frozenset(
    {"currency", "log_level", "host", "algorithm", "region", "locale", "timezone", "encoding", "compression", "default"}
)
DATE_ATTRIBUTES = frozenset({"released", "deadline", "date", "support", "lifetime", "cut_off"})
# What a number without a family must at least be called, to be more than a counter or an offset.
WEAK_ATTRIBUTES = frozenset({"limit", "minimum", "count", "size", "default", "rate", "date", "http_status"})

_SUPPORTS = frozenset({"support", "supports", "supported"})
_SPANS = frozenset({"period", "time", "age", "duration"})
_KEPT = frozenset({"keep", "keeps", "kept", "retain", "retained", "retention"})
# Bits are shifted for flags, and for sizes.
_SIZES = frozenset({"size_limit", "buffer_size", "memory"})
_VERSION_PARTS = frozenset({"major", "minor", "patch", "micro", "build", "abi"})

_NEEDS = frozenset({"requires", "require", "required", "engines", "min", "minimum"})
_NEEDED = re.compile(r"(?:>=|\^|~=|~>|~)?\s?v?(\d{1,4}(?:\.\d{1,4}){1,3})(?:,?\s?<\s?\S{1,12})?")
_VERSION = re.compile(r"[vV]?\d{1,4}(?:\.\d{1,8}){1,3}(?:[-.+]?[A-Za-z]{1,8}[-.]?\d{0,8})?")
_MAJOR_VERSION = re.compile(r"[vV]\d{1,3}|\d{1,2}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TEXT = re.compile(r"[\w.+:/@ -]{1,60}")

_EXAMPLE_FOLDER = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testdata|test_data|examples?|samples?|fixtures?|mocks?|demos?|benchmarks?)/",
    re.IGNORECASE,
)
_EXAMPLE_FILE = re.compile(
    r"(?:^|/)(?:test_[^/]*|conftest\.py|[^/]*(?:_test|_spec|\.test|\.spec|[a-z]Tests?|[a-z]Spec)\.\w+|[^/]*example[^/]*)$"
)


@dataclass(frozen=True, slots=True)
class Named:
    """A name with a literal value.

    Attributes:
        name: as written; of a path of keys the last.
        value: as written, quotes included.
        span: both, in the passage's text.
        around: names of what is around it, outermost first: modules, classes, functions, sections, parent keys.
        remarks: comments that belong to it.
        calls: what it is an argument of, innermost first.
        constant: whether it is a constant, a field, a default or a key of the configuration: something that holds,
            not a variable's first value.
        unit: of the value, when something else than name and value says it.
        configured: whether the value is text of a configuration, where ``15m`` is a quarter of an hour, not code.
    """

    name: str
    value: str
    span: Span
    around: tuple[str, ...] = ()
    remarks: str = ""
    calls: tuple[str, ...] = ()
    constant: bool = True
    unit: str | None = None
    configured: bool = False


@dataclass(frozen=True, slots=True)
class _Reading:
    kind: ClaimKind
    attribute: str
    value: str
    unit: str | None = None


def claim_of(named: Named, passage: Passage) -> Claim | None:
    """Read a named value as a claim; ``None`` when it is none that anybody would check."""
    words = _own_words(named)
    reading = _read(words, named)
    if reading is None:
        return None
    return make_claim(passage, named, reading.kind, reading.attribute, reading.value, reading.unit, words)


def make_claim(
    passage: Passage,
    named: Named,
    kind: ClaimKind,
    attribute: str,
    value: str,
    unit: str | None,
    words: Sequence[str],
) -> Claim:
    """Put a claim together: its entity and topics are what its name, its surroundings and its file say."""
    entity = entity_of(words, attribute) or _nearest(named.around, attribute) or _from_passage(passage, attribute)
    return Claim(
        kind=kind,
        entity=entity,
        attribute=attribute,
        value=value,
        unit=unit,
        span=Span(passage.start + named.span.start, passage.start + named.span.end),
        statement=statement_at(passage.text, named.span),
        topics=_topics(passage, named, words, attribute),
        mood=mood_of(passage),
    )


def _own_words(named: Named) -> tuple[str, ...]:
    """Split the name; ``enabled``, ``ttl`` or ``timeout`` alone leave what they speak of to the key around them."""
    return vocabulary.split_name(named.name)


def entity_of(words: Sequence[str], attribute: str) -> str:
    """Return a name's words without those of its attribute, units and boilerplate."""
    stems = vocabulary.topics_of(" ".join(words), without=(attribute,))
    return " ".join(word for word in words if vocabulary.stem(word) in stems)


def _nearest(around: Sequence[str], attribute: str) -> str:
    for name in reversed(around):
        entity = entity_of(vocabulary.split_name(name), attribute)
        if entity:
            return entity
    return ""


def _from_passage(passage: Passage, attribute: str) -> str:
    names = [*(passage.section or "").split(">"), *(passage.title or "").split(".")]
    folder, _, file = passage.path.rpartition("/")
    stem_of_file = file.rsplit(".", 1)[0]
    return _nearest([vocabulary.telling_folder(folder), stem_of_file, *names], attribute)


def _topics(passage: Passage, named: Named, words: Sequence[str], attribute: str) -> tuple[str, ...]:
    """Collect topics from near to far, at most ``MAX_TOPICS``: the name, what is around it, remarks, the file."""
    found: dict[str, None] = {}
    texts = (
        " ".join(words),
        *reversed(named.around),
        *named.calls,
        passage.title or "",
        passage.section or "",
        named.remarks,
    )
    left_out = (attribute,)
    for text in texts:
        if text:
            found.update(dict.fromkeys(vocabulary.ordered_topics(text, left_out)))
    of_file = set(vocabulary.path_topics(passage.path)) - vocabulary.family_stems(attribute)
    near = [topic for topic in found if topic not in of_file][: MAX_TOPICS - len(of_file)]
    return tuple(sorted({*near, *of_file}))


def mood_of(passage: Passage) -> Mood:
    """Tell whether a file only shows: tests, examples, fixtures."""
    path = passage.path
    return "example" if _EXAMPLE_FOLDER.search(path) or _EXAMPLE_FILE.search(path) else "stated"


def statement_at(text: str, span: Span) -> str:
    """Return the lines that a span stands on, blank space collapsed, at most ``MAX_STATEMENT`` characters."""
    start = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", span.end)
    end = len(text) if end < 0 else end
    if end - start > MAX_STATEMENT * 2:
        start, end = max(start, span.start - 20), min(end, max(span.end, span.start + MAX_STATEMENT))
    return " ".join(text[start:end].split())[:MAX_STATEMENT].rstrip()


def _read(words: tuple[str, ...], named: Named) -> _Reading | None:
    attribute = vocabulary.attribute_of(words)
    value = named.value.strip()
    bare = value.strip("\"'`")
    lowered = bare.lower()
    if attribute == "owner":
        return _Reading("owner", attribute, _words_of(bare)) if _TEXT.fullmatch(bare) and bare[:1].isalpha() else None
    if value == bare and lowered in _TRUE | _FALSE:
        return _switch(words, attribute, lowered in _TRUE, named)
    if attribute == "enabled":
        return _switch(words, attribute, bare == "1", named) if bare in {"0", "1"} else None
    if _NEEDS & {*words} and attribute in {None, "version"} and (needed := _NEEDED.fullmatch(bare)):
        return _Reading("version", "min_version", needed[1])
    if attribute == "version":
        return None if _VERSION_PARTS & {*words} else _version(bare)
    if _DATE.fullmatch(bare):
        day = normal_date(bare)
        return _Reading("date", attribute or _plain(words), day) if day and attribute in DATE_ATTRIBUTES else None
    return _number(words, attribute, value, named) or _text(words, attribute, value, named)


def _words_of(text: str) -> str:
    return " ".join(vocabulary.split_name(text))


def _plain(words: Sequence[str]) -> str:
    """Return what a name without a family is called: its words without units and boilerplate."""
    return entity_of(words, "")


def _switch(words: Sequence[str], attribute: str | None, on: bool, named: Named) -> _Reading | None:
    if attribute != "enabled" and not (named.constant and (attribute is None or attribute in {"support", "default"})):
        return None
    if attribute == "support" and not _SUPPORTS & {*words}:
        return None
    if any(word in _OFF_WORDS for word in words):
        on = not on
    return _Reading("switch", "enabled", "on" if on else "off")


def _version(bare: str) -> _Reading | None:
    if _VERSION.fullmatch(bare):
        return _Reading("version", "version", normal_version(bare) or bare.lower().removeprefix("v"))
    if _MAJOR_VERSION.fullmatch(bare):
        return _Reading("version", "version", bare.lower().removeprefix("v"))
    return None


def _number(words: Sequence[str], attribute: str | None, value: str, named: Named) -> _Reading | None:
    found = written_quantity(value.strip("\"'")) if named.configured else quantity(value)
    if found is None:
        return None
    if attribute == "http_status":
        return _Reading("http_status", attribute, found.number) if found.number in STATUS_CODES else None
    unit = found.unit or vocabulary.unit_in_name(words) or named.unit
    if not _is_setting(attribute, unit, found, named):
        return None
    canonical = canonical_number(found.number, unit)
    if canonical is None:
        return None
    if found.unit is not None and found.unit.startswith("requests per"):
        attribute = "rate_limit" if attribute in {None, "rate", "limit", "default"} else attribute
    if found.unit == "minutes" and "cpu" in words:
        return None  # 250m are thousandths of a core
    if attribute == "default" and unit is not None and _plain(words):
        attribute = None  # DEFAULT_GRACE_SECONDS: the rest of the name says what it is
    if unit is None and "length" in words and attribute in {"minimum", "length_limit", "limit"}:
        canonical = canonical[0], "character"
    if attribute is None and canonical[1] in _TIMES:
        attribute = next((_TIMED[word] for word in words if word in _TIMED), None)
    if attribute == "lifetime" and unit is None and _KEPT & {*words} and not _SPANS & {*words}:
        attribute = "limit"  # KEEP_RUNS = 20 keeps twenty, for however long
    name = attribute or _plain(words)
    return _Reading("number", name, *canonical) if name else None


def _is_setting(attribute: str | None, unit: str | None, found: Quantity, named: Named) -> bool:
    """Tell a setting from a counter, an index, a table entry.

    A variable that starts with 0 or 1 counts; a weak family or none at all needs a constant, and without a family the
    name must carry a unit.
    """
    if "<<" in named.value and attribute not in _SIZES:
        return False
    if not named.constant:
        return attribute is not None and attribute not in WEAK_ATTRIBUTES and found.number not in {"0", "1"}
    if attribute is None:
        return unit is not None and not set(vocabulary.split_name(named.name)) <= UNIT_NAMES
    return True


def _text(words: Sequence[str], attribute: str | None, value: str, named: Named) -> _Reading | None:
    bare = value.strip("\"'`")
    if not named.constant or attribute not in TEXT_ATTRIBUTES or not _TEXT.fullmatch(bare) or not bare.strip():
        return None
    if attribute == "default":
        plain = _plain(words)
        return _Reading("default", plain, bare.lower()) if plain and _VERSION.fullmatch(bare) is None else None
    return _Reading("default", attribute, bare.lower())
