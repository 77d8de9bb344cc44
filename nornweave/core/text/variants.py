"""The variants of one document in a source: translations, versions, archived copies.

Their paths tell: they differ in a part that names a language (``docs/de/``, ``README.zh.md``) or a version
(``docs/v2/``, ``guide-v2.md``, ``archive/``), and in nothing else.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple, TypeAlias

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
