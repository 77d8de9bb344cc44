"""The index fields of a chunk: the text that BM25 sees, and its symbol, path, headings, people, tags and dates.

A *key* is ``field:value``, lower case, blank space collapsed: ``symbol:handle_payment_error``, ``path:handlers.py``,
``name:rate limits`` (headings, titles, people, channels, tags), ``date:2026-01-16``, ``date:2026-01``. The index holds
a chunk's keys (``lookup_keys``), a query asks for those that it mentions (``asked_keys``).

What code defines has keys that forgive the spelling: ``defines:upsertall`` for ``upsert_all``, ``upsertAll`` and
``UpsertAll``, beside ``spelled:upsert_all`` and ``spelled:Table.upsert_all``, and ``words:all upsert`` for its words in
whatever order and form, ``done_to:cache key`` for ``build_cache_key``; ``owner:table`` for the class, module, folder
and package around it. ``place:aside`` marks tests, examples and stubs, ``place:imports`` import blocks,
``place:variant`` pages whose path says that they are a translation, one version or a copy that is kept, and
``place:release`` the sections of changelogs that have a version or a day for a heading, and ``place:past`` commits and
releases; ``commit:ffba396`` is what people call a commit.

The variants of one document in a source are translations, versions and archived copies. Their paths tell: they differ
in a part that names a language (``docs/de/``, ``README.zh.md``) or a version (``docs/v2/``, ``guide-v2.md``,
``archive/``), and in nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import combinations, pairwise
from typing import NamedTuple, TypeAlias

from nornweave.core import types
from nornweave.core.text.analyzer import FUNCTION_TERMS, analyze, sequence
from nornweave.core.text.function_words import FUNCTION_WORDS
from nornweave.core.types import COMMIT, NO_METADATA, Chunk, Document, Domain, Frequencies, JsonValue

Version: TypeAlias = tuple[int, ...]

_CODES = (
    "ar|bg|bn|ca|cn|cs|da|de|el|en|es|et|fa|fi|fr|he|hi|hr|hu|id|it|ja|jp|ko|kr|lt|lv|ms|nb|nl|no|pl|pt|ro|ru|sk|sl|sr|"
    "sv|ta|th|tr|uk|ur|vi|zh"
)
_COUNTRIES = {"cn": "zh", "jp": "ja", "kr": "ko"}
"""Countries by which people name languages."""
_REGION = r"[-_](?:[a-z]{2}|hans|hant|\d{3})"
_LANGUAGE = re.compile(rf"({_CODES})(?:{_REGION})?", re.IGNORECASE)
_NUMBER = re.compile(
    r"(?:v|version[-_]?|release[-_]?)(\d+(?:\.\d+)*)(?:\.x)?|(\d+(?:\.\d+)+)(?:\.x)?|(\d+)\.x", re.IGNORECASE
)
_SUFFIX = re.compile(
    rf"(?P<stem>.+?)(?:\.(?P<dotted>(?:{_CODES})(?:{_REGION})?)|[-_](?P<region>(?:{_CODES}){_REGION})"
    rf"|(?<=(?-i:[A-Z]))[-_](?P<code>{_CODES})|[-_.](?P<number>v\d+(?:\.\d+)*))",
    re.IGNORECASE,
)
_AROUND = frozenset({"docs", "doc", "i18n", "l10n", "locale", "locales", "translations", "versioned_docs", "content"})
"""Folders of documentation: one variant may stand in them and another beside them."""
KEPT, DEVELOPED, NUMBERED, CURRENT = range(4)
_STANDINGS = {
    **dict.fromkeys(("archive", "archived", "archives", "deprecated", "legacy", "old"), KEPT),
    **dict.fromkeys(("dev", "develop", "edge", "main", "master", "next", "nightly", "unreleased"), DEVELOPED),
    **dict.fromkeys(("current", "latest", "stable"), CURRENT),
}
_ASKED = re.compile(
    r"(?<![\w.-])(?:v|(?:version|release)s?\s+v?)(\d{1,4}(?:\.\d{1,4}){0,3})(?:\.x)?(?![\w-]|\.\w)"
    r"|(?<![\w.-])(\d{1,4}(?:\.\d{1,4}){1,3})(?:\.x)?(?![\w-]|\.\w)|(?<![\w.-])(\d{1,4})\.x\b",
    re.IGNORECASE,
)
_SCRIPTS = (
    ("ja", "\u3040-\u30ff"),
    ("ko", "\uac00-\ud7af"),
    ("zh", "\u4e00-\u9fff"),
    ("uk", "іїєґІЇЄҐ"),
    ("ru", "\u0400-\u04ff"),
    ("el", "\u0370-\u03ff"),
    ("he", "\u0590-\u05ff"),
    ("ar", "\u0600-\u06ff"),
    ("hi", "\u0900-\u097f"),
    ("th", "\u0e00-\u0e7f"),
)
_SMALL_WORDS = {
    "en": "a are can do does for how i in is it of on the to what when where which why with",
    "de": "das der die ein eine für ich ist kann man mit nicht und von wann warum was welche wie wird wo zu",
    "es": "como cómo con cuál cuando cuándo de dónde el en es la las los para por que qué se un una",
    "fr": "comment dans de des du en est est-ce je la le les où par pour quel quelle que qui sont un une",
    "it": "che come con cosa di dove il in la le lo per perché quale quando si sono un una è",
    "nl": "de een en het hoe ik in is kan met van waar waarom wanneer wat welke worden",
    "pl": "co czy do gdzie i jak jaki jest kiedy na nie się w z",
    "pt": "a com como da de do em é não o onde os para por qual quando que um uma",
}
_SMALL = {language: frozenset(words.split()) for language, words in _SMALL_WORDS.items()}

VERSION = "fields-14"

LISTS_RELEASES = "lists_releases"
"""Metadata of the passages of a changelog that only its headings tell."""
MAX_VALUE_CHARACTERS = 120
# "How do I configure rate limits" asks for "configure rate limits" and "rate limits"; nothing longer is named.
MAX_NAME_WORDS, MOST_WORDS_OF_NAME = 6, 4
# The rest of a long query is pasted text and names nothing.
MAX_WORDS = 64

_SYMBOL_KEYS = ("function_name", "class_name")
_NAME_KEYS = ("speaker", "participants", "authors", "author", "tags", "channel")
_DATE_KEYS = ("message_timestamp", "message_timestamps", "publication_date")

WORDS, WORDS_DONE_TO = "words", "done_to"
ASIDE, IMPORTS, VARIANT, RELEASE = "place:aside", "place:imports", "place:variant", "place:release"
PAST = "place:past"
SHELL = "place:shell"
"""Nothing but headings, and markup with its labels: "<summary>Show…</summary>"."""
RELEASE_PAGE = "place:release page"
"""A section of a page about one release, which is a page as others are where nobody asks for a release."""
COMMIT_DIGITS = (7, 13)
"""How many digits of a commit a key has, by which people call it: from the first on, below the second."""
_ASIDE = re.compile(
    r"(?:^|[/_.-])(?:tests?|specs?|__tests__|examples?|bench(?:es|marks?)?|fixtures?|mocks?)(?:[/_.-]|$)"
    r"|[a-z]Tests?\.\w{1,5}$|[a-z]Spec\.(?:groovy|hs|js|kt|scala|swift|ts)$"  # a ``MethodSpec.java`` is no test
    r"|\.t$|\.pyi$|\.d\.[cm]?ts$"  # stubs announce what is defined elsewhere
)
# An example of a configuration is the place that documents its settings.
_EXAMPLE = re.compile(r"[._-](?:example|sample)(?=$|\.(?:ya?ml|json|toml|ini|conf|cfg|env|properties)$)")
_ONLY_RELEASES = re.compile(
    r"merge tag '[^']*\d[^']*'(?: of \S+)? into \S+"
    r"|clean(?:ed|ing)?(?: ?up)? for (?:a |the )?(?:tag|release|v?\d+\.\d)\S*(?: release)?"
    r"|(?:\w+(?:\(\w+\))?: )?(?:adjust|add|fix|edit|correct|tweak|improv|amend|extend|clean ?up|writ|format)\w*"
    r" (?:(?:the|to|in|an?|missing|some|new) )*(?:change ?logs?|release ?notes)(?:\.\w+)?"
    r"(?: (?:entr(?:y|ies)|for|to|of|v?\d[\w.]*))*[\W\d]*"
    r"|(?:\W|\d|\bv\d|_|\b(?:releas(?:e|ed|ing)\ (?!for|of|to)[\w-]+\ (?=(?:version\ )?v?\d+\.\d)"
    r"|(?:bump|releas|updat|prepar|increment|cut)(?:e|es|ed|ing|s)?|versions?|change|log|changelog|notes?|for|to"
    r"|the|a|of|in|and|new|next|number|chore|set|tag|draft|v)\b)*"
)
"""What the first line of a commit says that does nothing but release, or keep the changelog."""
_SKIPPED = re.compile(r"\[(?:ci skip|skip ci|no ci)\]")
_PACKAGE = re.compile(r"^\s*package\s+([\w.]+)", re.MULTILINE)
_PACKAGED = frozenset({"go", "java", "kotlin"})
_HEAD_CHARACTERS = 4_000
_LABELS = re.compile(
    r"<(summary|title|h\d)\b[^>]*>[^<]{0,200}</\1>|</?[a-z!][^>]{0,500}>|^#{1,6}[^\S\n][^\n]*$"
    r"|^[^\n]+\n(?:={3,}|-{3,}|~{3,})$",
    re.IGNORECASE | re.MULTILINE,
)
_NOT_SPELLED = re.compile(r"[\W_]+")

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)*")
# The lookbehinds change no match, they keep the search linear.
_PATH = re.compile(
    r"(?<![\w.@~+-])[\w.@~+-]*(?:/[\w.@~+-]+)+|(?<![\w+-])(?<![\w+-]\.)[\w+-]+(?:\.[\w+-]+)*\.[a-z]{1,5}\b"
)
_WORD = re.compile(r"(?<![\w#@.'-])[\w#@.'-]*\w")
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{1,2})(?:-(\d{1,2}))?\b")
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_MONTH = "|".join((*MONTHS, *(f"{month[:3]}\\.?" for month in MONTHS)))
_SPOKEN_DATE = re.compile(
    rf"\b(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<month>{_MONTH})"
    r"(?:\s+(?P<d2>\d{1,2})(?:st|nd|rd|th)?)?,?\s+(?P<year>\d{4})\b",
    re.IGNORECASE,
)

_HEADING_NUMBER = re.compile(
    r"\W{0,3}(?:(?:release|version|ver\.?)\s+)?v?([A-Z0-9]{1,4}(?:\.\d{1,4}){1,3})(?![\w]|\.\w)", re.IGNORECASE
)
"""By which people call a section: "2.1", "B.3", "[v1.9.0] - 2025-08-11"."""
_CHANGES = re.compile(
    r"(?i)(?:change|release|relnotes?|history|news|whats[-_]?new)[^/]*$"
    r"|(?:^|/)(?:changes|changelogs?|releases?|release[-_]?notes|relnotes|whats[-_]?new)/(?:[^/]+/)?[^/]*\d[^/]*$"
)
_UPGRADING = re.compile(r"(?i)upgrad|migrat")
LEAST_RELEASES, IN_ORDER = 3, 0.8
"""A page with so many releases for headings, such a share of them after a newer one, is a changelog."""
_RELEASED = re.compile(r"\b\d{4}[-/]\d\d[-/]\d\d\b")
_RELEASE = re.compile(
    r"\W{0,3}(?:[\w@/.-]{1,80}@(?=\d))?(?:(?:release|version|ver\.?|notes|for|of|changes|in|what['’]?s|new):?\s+){0,4}"
    r"(?:(?:v|(?<=[en]\s))(\d{1,4})|v?(\d{1,4}(?:\.\d{1,4}){1,3}))"
    r"(?=(?:\.?(?:a|b|rc|alpha|beta|dev|post)\.?\d+)?(?:$|[^\w.]|\.\W|\.$))",
    re.IGNORECASE,
)
"""A heading that is a version: "[v1.9.0] - 2025-08-11", "pkg@1.2.0", "Release Notes For v0.4.0", "Version 2"."""
_ONLY_DATED = re.compile(rf"(?:[\W\d_]|{_MONTH}|(?:un)?released|yanked|on|of|st|nd|rd|th)*+\Z", re.IGNORECASE)
"""What follows a version in the heading of a release, not in "2.1 Limits"."""
_TAGGED = re.compile(r"^[A-Za-z][A-Za-z0-9.+]{0,40}(?:[-_][A-Za-z][A-Za-z0-9.+]{0,40})*[-_/](?=v?\d+\.\d)")
_VERSION = re.compile(r"(?<![\w.-])v?(\d{1,4}(?:\.\d{1,4}){1,3})(?![\w-]|\.\w)", re.IGNORECASE)
_ENTRY = re.compile(r"^[^\S\n]*[-*+][^\S\n]+(?!\[[^\]\n]*\]\([^)\n]*\)[^\S\n]*$)\S[^\n]*", re.MULTILINE)
"""An entry of a list that is not only a link, as of a download."""
SAYS_NOTHING = re.compile(
    r"\s*(?:[-*+]\s+)?[*_(]*(?:nothing|none|n/?a|no(?:\s+\w+){0,2}\s+changes?)(?:\s+(?:here|yet))?[\s*_().!]*",
    re.IGNORECASE,
)
"""The whole of an entry that only keeps its place in a list: "- *Nothing*", "N/A", "No notable changes"."""

SINCE = re.compile(r"\b(?:since|after)\b", re.IGNORECASE)

THREAD_NUMBER = re.compile(r"(?<![\w/&])(?:[#!]|GH-)(\d{1,7})\b")
"""How a commit names an issue or a pull request: ``#12``, ``!12``, ``GH-12``."""
# Formats whose threads have a number or a key.
_NUMBERED = frozenset({"github", "gitlab", "jira"})


class Variant(NamedTuple):
    """The language and version of a document, read from its path.

    Attributes:
        family: the path without language and version. Documents of one family are variants of each other.
        language: the two-letter code of the language; empty if the path names none.
        version: the numbers of the version; empty if the path names none.
        standing: ``KEPT``, ``DEVELOPED``, ``NUMBERED`` or ``CURRENT``. It is ``CURRENT`` if the path names no version.
    """

    family: str
    language: str = ""
    version: Version = ()
    standing: int = CURRENT

    @property
    def is_variant(self) -> bool:
        """Tell whether the path names a language or a version."""
        return bool(self.language or self.version) or self.standing != CURRENT


@lru_cache(maxsize=4_096)
def variant_of(path: str) -> Variant:
    """Return the variant of the document at a path."""
    *folders, name = path.split("/")
    stem, dot, ending = name.rpartition(".")
    language, standing, left = "", CURRENT, []
    version: Version = ()
    for folder in folders:
        lowered = folder.lower()
        if named := _LANGUAGE.fullmatch(folder):
            language = named[1].lower()
        elif number := _NUMBER.fullmatch(folder):
            version, standing = _version(next(filter(None, number.groups()))), NUMBERED
        elif lowered in _STANDINGS:
            standing = _STANDINGS[lowered]
        elif lowered not in _AROUND:
            left.append(folder)
    if suffix := _SUFFIX.fullmatch(stem) if dot else None:
        stem = suffix["stem"]
        if suffix["number"]:
            version, standing = _version(suffix["number"][1:]), NUMBERED
        else:
            language = re.split("[-_]", suffix["dotted"] or suffix["region"] or suffix["code"])[0].lower()
    family = "/".join((*left, f"{stem}{dot}{ending}")).lower()
    return Variant(family, _COUNTRIES.get(language, language), version, standing)


def asked_versions(text: str) -> frozenset[Version]:
    """Return the versions that a question names: ``v2``, ``version 2``, ``2.x``, ``2.0.1``."""
    return frozenset(_version(next(filter(None, found))) for found in _ASKED.findall(text))


def is_version(version: Version, asked: Version) -> bool:
    """Tell whether two versions agree in all numbers that both have, as 2.3 and 2 do."""
    count = min(len(version), len(asked))
    return count > 0 and version[:count] == asked[:count]


def language_of(text: str) -> str:
    """Return the language of a question by its script or its small words, English if neither tells."""
    for language, letters in _SCRIPTS:
        if re.search(f"[{letters}]", text):
            return language
    words = frozenset(re.findall(r"[^\W\d_]+", text.lower()))
    return max(_SMALL, key=lambda language: len(words & _SMALL[language]))


def _version(written: str) -> Version:
    return tuple(int(part) for part in written.split("."))


def terms_by_field(document: Document, chunk: Chunk) -> dict[str, Frequencies]:
    """Return term → its number of occurrences in each of ``types.FIELDS``, for the terms of a chunk.

    Every code chunk has its language as a term. So "python" in "python sort a list" prefers all Python code, not only
    chunks that mention the word.
    """
    titles = (document.title, chunk.title, chunk.metadata.get("language"), thread_number(document, chunk))
    title = "\n".join(part for part in titles if isinstance(part, str))
    counted = [analyze(text) for text in (document.path, title, chunk.section or "", chunk.content)]
    terms = dict.fromkeys(term for counts in counted for term in counts)
    return {term: tuple(counts[term] for counts in counted) for term in terms}


def lookup_keys(document: Document, chunk: Chunk) -> set[str]:
    """Return the lookup keys of a chunk."""
    known = {**document.metadata, **chunk.metadata}
    keys = {*_path_keys(document.path)}
    symbols = [known.get(key) for key in _SYMBOL_KEYS]
    names = [
        *(document.title, chunk.title, *(chunk.section or "").split(" > "), thread_number(document, chunk)),
        *(name for key in _NAME_KEYS for name in _strings(known.get(key))),
    ]
    keys.update(_key("symbol", value) for value in symbols if isinstance(value, str))
    keys.update(_key("name", value) for value in names if value and value.strip())
    keys.update(
        _key("name", number)
        for value in names
        if value and (match := _HEADING_NUMBER.match(value))
        for number in _prefixes(match[1])
    )
    keys.update(key for name in _DATE_KEYS for value in _strings(known.get(name)) for key in _date_keys(value))
    keys.update(_definition_keys(document, chunk))
    if is_aside(document.path):
        keys.add(ASIDE)
    if chunk.metadata.get("node_type") == "import_block":
        keys.add(IMPORTS)
    if document.domain != Domain.CODE and variant_of(document.path).is_variant:
        keys.add(VARIANT)
    if document.domain == Domain.DOCUMENTATION and not _WORD.search(_LABELS.sub("", chunk.content)):
        keys.add(SHELL)
    if release := release_of(document.path, chunk.title, chunk.section, chunk.metadata):
        keys.add(RELEASE)
        if not _headed_release(chunk.title, chunk.section):
            keys.add(RELEASE_PAGE)
        keys.update(_key("name", number) for number in _prefixes(".".join(map(str, release))))
    if document.format in {COMMIT, types.RELEASE}:
        keys.add(PAST)
        name = document.path.rpartition("/")[2]
        keys.update(_key("commit", name[:length]) for length in range(*COMMIT_DIGITS) if document.format == COMMIT)
        if document.format == types.RELEASE:
            called = {"release": name, "name": name, "after release": str(known.get("former") or "")}
            keys.update(
                _key(field, ".".join(map(str, version)))
                for field, tag in called.items()
                if (version := tag_version(tag))
            )
    return keys


def is_aside(path: str) -> bool:
    """Tell whether a path looks like a test, an example or a stub."""
    return _ASIDE.search(_EXAMPLE.sub("", path)) is not None


def is_data(path: str) -> bool:
    """Tell whether a path is of a file of values without comments."""
    return path.lower().endswith((".json", ".jsonl", ".csv", ".tsv"))


def release_keys(text: str) -> set[str]:
    """Return the lookup keys of the versions in a text.

    Their field is ``release``, or ``after release`` if the text asks what changed since a version.
    """
    field = "after release" if SINCE.search(text) else "release"
    return {_key(field, version) for version in versions_in(text)}


def release_of(
    path: str, title: str | None, section: str | None, metadata: Mapping[str, JsonValue] = NO_METADATA
) -> tuple[int, ...]:
    """Return the version of a changelog section, or else its year, month and day; empty for any other section.

    It is read from the headings or else from the name of the file: ``docs/releases/5.1.md``.
    """
    if "kind" in metadata or not (metadata.get(LISTS_RELEASES) or is_changelog(path)):  # a list of commits is none
        return ()
    name = re.sub(r"\.[A-Za-z]+\Z", "", path.rpartition("/")[2])
    return _headed_release(title, section) or (() if is_day(name) else tag_version(name))


def _headed_release(title: str | None, section: str | None) -> tuple[int, ...]:
    headings = filter(None, (*reversed((section or "").split(" > ")), title))
    return next(filter(None, map(released, headings)), ())


def has_entries(text: str) -> bool:
    """Tell whether a section of a changelog lists a change."""
    return any(not SAYS_NOTHING.fullmatch(entry[0]) for entry in _ENTRY.finditer(text))


def is_changelog(path: str) -> bool:
    """Tell whether a path looks like a changelog."""
    return bool(_CHANGES.search(path))


def lists_releases(path: str, headings: Iterable[str]) -> bool:
    """Tell whether a page has the headings of a changelog: versions in order, newest first if they have no dates."""
    found = [(match, heading) for heading in headings if (match := _RELEASE.match(heading)) and match[2]]
    alone = [heading for match, heading in found if _ONLY_DATED.match(heading, match.end())]
    steps = [first > then for first, then in pairwise(map(released, alone))]
    falling = sum(steps)
    rising = len(steps) - falling if all(map(re.compile(r"\d{4}").search, alone)) else 0
    is_long = len(alone) >= LEAST_RELEASES
    return is_long and max(falling, rising) >= IN_ORDER * len(steps) and not _UPGRADING.search(path)


def is_day(heading: str) -> bool:
    """Tell whether a changelog heading names a release by its day only."""
    return not _RELEASE.match(heading) and bool(_RELEASED.search(heading))


def released(heading: str) -> tuple[int, ...]:
    """Return the version in a changelog heading, or else its year, month and day; empty if it has neither."""
    number, day = _RELEASE.match(heading), _RELEASED.search(heading)
    return tuple(int(part) for part in re.findall(r"\d+", number[1] or number[2] if number else day[0] if day else ""))


def tag_version(tag: str) -> tuple[int, ...]:
    """Return the version in a tag's name (``jq-1.7``, ``release_1.7``); empty if there is none."""
    return released(tag) or released(_TAGGED.sub("", tag))


def only_releases(subject: str) -> bool:
    """Tell whether the first line of a commit says that the commit only made a release or kept the changelog."""
    return _ONLY_RELEASES.fullmatch(_SKIPPED.sub("", subject.lower()).strip()) is not None


def versions_in(text: str) -> tuple[str, ...]:
    """Return the versions that a text names, without a leading ``v``: ``1.9``, ``2.0.1``."""
    return tuple(dict.fromkeys(_VERSION.findall(text)))


def _prefixes(number: str) -> Iterator[str]:
    """Yield a version number and its shorter forms: ``1.9`` and ``1.9.0`` for ``1.9.0``."""
    parts = number.split(".")
    yield from (".".join(parts[:count]) for count in range(2, len(parts) + 1))


def words_key(terms: Iterable[str], field: str = WORDS) -> str:
    """Return the lookup key of a name that consists of these words; empty unless there are two to four words.

    Args:
        field: the field of the key. ``WORDS_DONE_TO`` is for a name that has one more word in front of these words.
    """
    words = sorted({term for term in terms if term not in FUNCTION_TERMS})
    return f"{field}:{' '.join(words)}" if 2 <= len(words) <= MOST_WORDS_OF_NAME else ""


def folded(name: str) -> str:
    """Return a name in lower case without underscores and hyphens."""
    return _NOT_SPELLED.sub("", name).lower()[:MAX_VALUE_CHARACTERS]


def _definition_keys(document: Document, chunk: Chunk) -> Iterator[str]:
    """Yield the keys of the definitions in a code chunk, and of their owners."""
    defined = [name.split(".") for name in _strings(chunk.metadata.get("defines"))]
    if not defined:
        return
    *folders, file = document.path.split("/")
    modules = {file.partition(".")[0], *folders[-1:]}
    if document.format in _PACKAGED and (package := _PACKAGE.search(document.text, 0, _HEAD_CHARACTERS)):
        modules.add(package[1].rpartition(".")[2])
    declared = {*_strings(chunk.metadata.get("declares"))}
    names, owners = {names[-1] for names in defined}, modules.union(*(names[:-1] for names in defined))
    qualified = {f"{owner}.{names[-1]}" for names in defined for owner in names[-2:-1] or modules}
    yield from (f"spelled:{name[:MAX_VALUE_CHARACTERS]}" for name in names | qualified)
    real = {names[-1] for names in defined if ".".join(names) not in declared}
    yield from (key for name in real if (key := words_key(sequence(name))))
    yield from (key for name in real if (key := words_key(sequence(name)[1:], WORDS_DONE_TO)))
    for field, values in (("defines", real), ("declares", names - real), ("owner", owners)):
        yield from (f"{field}:{value}" for name in values if (value := folded(name)))


def thread_number(document: Document, chunk: Chunk) -> str | None:
    """Return the number of a chunk's issue or pull request; ``None`` if the chunk belongs to neither."""
    thread = chunk.metadata.get("thread_id")
    return thread.rpartition("#")[2] if document.format in _NUMBERED and isinstance(thread, str) else None


def asked_keys(text: str) -> set[str]:
    """Return the lookup keys that a query mentions.

    Neighbouring words may be a name: "rate limits" in a question finds the section with this name. A single word counts
    only if it is written like a name or is the whole query, because even "set" and "get" are headings somewhere.
    """
    paths = paths_in(text)
    words = _WORD.findall(text)[:MAX_WORDS]
    keys = {*_asked_dates(text), *(_key("path", path.removeprefix("./").strip("/")) for path in paths)}
    keys.update(_key("name", name) for name in (*_asked_names(words), *versions_in(text)))
    keys.update(release_keys(text))
    for match in _IDENTIFIER.finditer(text):
        called = text[match.end() : match.end() + 1] == "("
        in_path = any(match[0] in path for path in paths)
        if not in_path and (is_identifier(match[0]) or called or text.strip() == match[0]):
            keys.add(_key("symbol", match[0]))
            keys.add(_key("symbol", re.split(r"\.|::|->", match[0])[-1]))
    return keys


def paths_in(text: str) -> set[str]:
    """Return the paths of files and folders in a text."""
    return {match[0] for match in _PATH.finditer(text)}


def _asked_names(words: Sequence[str]) -> Iterator[str]:
    content = [word.lower() not in FUNCTION_WORDS for word in words]
    for start, end in combinations(range(len(words) + 1), 2):
        several = end - start > 1 or len(words) == 1 or _is_written_as_name(words[start])
        if several and end - start <= MAX_NAME_WORDS and content[start] and content[end - 1]:
            yield " ".join(words[start:end])


def is_identifier(word: str) -> bool:
    """Tell whether a word looks like a name in code: ``snake_case``, ``camelCase``, ``HTTPError``, ``a.b``."""
    return (
        "_" in word.strip("_")
        or re.search(r"[a-z0-9][A-Z]|(?<![A-Z])[A-Z]{2,}[a-z]|\w(?:\.|::|->)[A-Za-z_]", word) is not None
        or (word.startswith("_") and len(word) > 1)
    )


def _is_written_as_name(word: str) -> bool:
    return word[:1] in "#@" or word[:1].isupper() or any(mark in word for mark in "_-.")


def _key(field: str, value: str) -> str:
    collapsed = " ".join(value.strip(" #@`'\"").lower().split())
    return f"{field}:{collapsed[:MAX_VALUE_CHARACTERS]}"


def _path_keys(path: str) -> Iterator[str]:
    """Yield lookup keys for a path and each of its tails: ``src/pay/card.py``, ``pay/card.py``, ``card.py``."""
    parts = path.split("/")
    for start in range(len(parts)):
        yield _key("path", "/".join(parts[start:]))


def _date_keys(value: str) -> Iterator[str]:
    try:
        day = datetime.fromisoformat(value.replace("Z", "+00:00")).date()
    except ValueError:
        return
    yield f"date:{day:%Y-%m-%d}"
    yield f"date:{day:%Y-%m}"


def _asked_dates(text: str) -> Iterator[str]:
    for match in _ISO_DATE.finditer(text):
        yield _date(match[1], match[2], match[3])
    for match in _SPOKEN_DATE.finditer(text):
        month = [name[:3] for name in MONTHS].index(match["month"][:3].casefold()) + 1
        yield _date(match["year"], str(month), match["d1"] or match["d2"])


def _date(year: str, month: str, day: str | None) -> str:
    return f"date:{year}-{int(month):02d}" + (f"-{int(day):02d}" if day else "")


def _strings(value: JsonValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for text in value if isinstance(text, str)] if isinstance(value, list | tuple) else []
