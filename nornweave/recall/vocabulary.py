"""The words that query expansion knows: acronyms, synonyms, error categories; the field's, a team's, a corpus's.

``vocabulary.yaml`` beside this module shows the format; a team's own file has the same keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import yaml

from nornweave.errors import ConfigError

FIELD_FILE = Path(__file__).with_name("vocabulary.yaml")
MAX_VOCABULARY_BYTES = 1_000_000

WORD = re.compile(r"\w+")

Phrase: TypeAlias = tuple[str, ...]
"""The words of a phrase, casefolded: what ``Great-Britain`` and ``great britain`` have in common."""


def phrase(text: str) -> Phrase:
    """Return the casefolded words of ``text``."""
    return tuple(word.casefold() for word in WORD.findall(text))


@dataclass(frozen=True, slots=True)
class Category:
    """An error category: what is added to a query, best first, and the words by which it shows."""

    keywords: tuple[str, ...]
    cues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """What a phrase may be replaced by, best first; ``capitals``: only where the text writes it exactly like that."""

    alternatives: tuple[str, ...]
    capitals: str | None = None


@dataclass(frozen=True, slots=True)
class PhraseIndex:
    """Phrases by their words; ``longest`` is the number of words of the longest one that starts with a word."""

    entries: Mapping[Phrase, Entry]
    longest: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Words for query expansion; ``vocabulary.yaml`` says what each of them means.

    Attributes:
        ordinary_words: acronyms spelled like one of these (lower case) count in capitals only.
        names: casefolded; written like identifiers, but never spelled out.
    """

    acronyms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    synonyms: tuple[tuple[str, ...], ...] = ()
    categories: Mapping[str, Category] = field(default_factory=lambda: MappingProxyType({}))
    ordinary_words: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    acronym_index: PhraseIndex = field(init=False, repr=False)
    synonym_index: PhraseIndex = field(init=False, repr=False)
    cue_index: PhraseIndex = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "acronym_index", _index(_acronym_entries(self.acronyms, self.ordinary_words)))
        object.__setattr__(self, "synonym_index", _index(_synonym_entries(self.synonyms)))
        object.__setattr__(self, "cue_index", _index(_cue_entries(self.categories)))

    def extended(self, other: Vocabulary) -> Vocabulary:
        """Return both; for one acronym, category or synonym ``other`` wins."""
        spelled = {acronym.casefold() for acronym in other.acronyms}
        kept = {short: long for short, long in self.acronyms.items() if short.casefold() not in spelled}
        return Vocabulary(
            acronyms=MappingProxyType({**kept, **other.acronyms}),
            synonyms=(*other.synonyms, *self.synonyms),
            categories=MappingProxyType({**self.categories, **other.categories}),
            ordinary_words=self.ordinary_words | other.ordinary_words,
            names=self.names | other.names,
        )


def field_vocabulary() -> Vocabulary:
    """Return the vocabulary of the field, read once."""
    return _field_vocabulary()


@cache
def _field_vocabulary() -> Vocabulary:
    return load_vocabulary(FIELD_FILE)


def load_vocabulary(file: Path) -> Vocabulary:
    """Read a vocabulary of its own: what the field knows is added by ``field_vocabulary().extended(...)``.

    Raises:
        ConfigError: the file cannot be read, or an entry of it is wrong: key, value, what is allowed.
    """
    return parse_vocabulary(_read(file), str(file))


def parse_vocabulary(loaded: object, where: str) -> Vocabulary:
    """Check what a vocabulary file holds.

    Args:
        loaded: the parsed YAML; ``None`` (an empty file) is an empty vocabulary.
        where: what error messages start with.

    Raises:
        ConfigError: as ``load_vocabulary``.
    """
    top = _mapping({} if loaded is None else loaded, where)
    allowed = ("acronyms", "synonyms", "categories", "ordinary_words", "names")
    for key in top:
        if key not in allowed:
            raise ConfigError(f"{where}: unknown key {key!r}; allowed here: {', '.join(allowed)}")
    acronyms = {
        _word(short, f"{where}: acronyms"): _words(long, f"{where}: acronyms.{short}")
        for short, long in _mapping(top.get("acronyms", {}), f"{where}: acronyms").items()
    }
    categories = {
        _word(name, f"{where}: categories"): _category(value, f"{where}: categories.{name}")
        for name, value in _mapping(top.get("categories", {}), f"{where}: categories").items()
    }
    return Vocabulary(
        acronyms=MappingProxyType(acronyms),
        synonyms=tuple(_synonyms(top.get("synonyms", []), f"{where}: synonyms")),
        categories=MappingProxyType(categories),
        ordinary_words=frozenset(
            word.casefold() for word in _list(top.get("ordinary_words", []), f"{where}: ordinary_words")
        ),
        names=frozenset(word.casefold() for word in _list(top.get("names", []), f"{where}: names")),
    )


def _read(file: Path) -> object:
    try:
        if file.stat().st_size > MAX_VOCABULARY_BYTES:
            raise ConfigError(f"{file}: larger than {MAX_VOCABULARY_BYTES} bytes; this is no vocabulary")
        loaded: object = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{file}: not valid YAML: {error}") from error
    return loaded


def _mapping(value: object, where: str) -> Mapping[object, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: expected a mapping, found {value!r}")
    return value


def _list(value: object, where: str) -> list[str]:
    if not isinstance(value, list):
        raise ConfigError(f"{where}: expected a list of words, found {value!r}")
    return [_words(item, f"{where}[{position}]") for position, item in enumerate(value)]


def _words(value: object, where: str) -> str:
    if not isinstance(value, str) or not phrase(value):
        hint = "; quote it" if isinstance(value, bool | int | float) else ""
        raise ConfigError(f"{where}: expected words, found {value!r}{hint}")
    return " ".join(value.split())


def _word(value: object, where: str) -> str:
    text = _words(value, where)
    if len(phrase(text)) != 1:
        raise ConfigError(f"{where}: expected one word as key, found {text!r}")
    return text


def _synonyms(value: object, where: str) -> Iterator[tuple[str, ...]]:
    if not isinstance(value, list):
        raise ConfigError(f"{where}: expected a list of lists of words, found {value!r}")
    for position, line in enumerate(value):
        words = _list(line, f"{where}[{position}]")
        if len(words) < 2:
            raise ConfigError(f"{where}[{position}]: expected at least two words, found {words!r}")
        yield tuple(words)


def _category(value: object, where: str) -> Category:
    parts = {"keywords": value} if isinstance(value, list) else _mapping(value, where)
    for key in parts:
        if key not in {"keywords", "cues"}:
            raise ConfigError(f"{where}: unknown key {key!r}; allowed here: keywords, cues")
    keywords = _list(parts.get("keywords", []), f"{where}.keywords")
    if not keywords:
        raise ConfigError(f"{where}.keywords: expected at least one word")
    return Category(tuple(keywords), tuple(_list(parts.get("cues", []), f"{where}.cues")))


def _index(entries: Iterator[tuple[str, Entry]]) -> PhraseIndex:
    found: dict[Phrase, Entry] = {}
    longest: dict[str, int] = {}
    for text, entry in entries:
        words = phrase(text)
        if words and words not in found:
            found[words] = entry
            longest[words[0]] = max(longest.get(words[0], 0), len(words))
    return PhraseIndex(MappingProxyType(found), MappingProxyType(longest))


def _acronym_entries(acronyms: Mapping[str, str], ordinary: frozenset[str]) -> Iterator[tuple[str, Entry]]:
    for short, long in acronyms.items():
        yield short, Entry((long,), capitals=short if short.casefold() in ordinary else None)
    for short, long in acronyms.items():
        yield long, Entry((short,))


def _synonym_entries(lines: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, Entry]]:
    """Yield each line's first word with the others, then, where no line starts with them, the others with the rest."""
    for line in lines:
        yield line[0], Entry(line[1:])
    for line in lines:
        for position, word in enumerate(line):
            yield word, Entry((*line[:position], *line[position + 1 :]))


def _cue_entries(categories: Mapping[str, Category]) -> Iterator[tuple[str, Entry]]:
    for name, category in categories.items():
        for cue in (name, *category.cues):
            yield cue, Entry((name,))
