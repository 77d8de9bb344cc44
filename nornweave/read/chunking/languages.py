"""Which language source code is in, whether a program wrote it, and what each tree-sitter grammar calls its nodes.

The tables are in ``grammars.yaml``: ``syntax`` reads single nodes with them, ``regions`` whole files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePosixPath
from typing import cast

import yaml

_TABLES = resources.files("nornweave.read.chunking").joinpath("grammars.yaml")

EXTENSIONS = {
    "python": "py pyi pyw",
    "typescript": "ts tsx mts cts",
    "javascript": "js jsx mjs cjs",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c h",
    "cpp": "cpp cc cxx c++ hpp hh hxx h++ ipp inl tpp cppm ixx",
    "ruby": "rb rake gemspec ru",
    "php": "php phtml php5",
    "csharp": "cs csx",
    "swift": "swift",
    "kotlin": "kt kts",
}
FILE_NAMES = {"rakefile": "ruby", "gemfile": "ruby", "vagrantfile": "ruby", "podfile": "ruby", "fastfile": "ruby"}

LANGUAGES = tuple(EXTENSIONS)

_BY_EXTENSION = {f".{ending}": language for language, endings in EXTENSIONS.items() for ending in endings.split()}


def language_of(path: str) -> str | None:
    """Name the programming language of a file by its name; ``None`` when it is none of the thirteen."""
    name = PurePosixPath(path).name.lower()
    return FILE_NAMES.get(name) or _BY_EXTENSION.get(PurePosixPath(name).suffix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """The node types of one grammar that matter for chunking.

    Attributes:
        name: of the grammar, as ``parsing.language`` takes it.
        functions: functions and methods; without a body they are declarations, unless in ``bodiless``.
        classes: everything that has members and a name (struct, trait, impl, interface, enum, module, …).
        needs_body: a class type that without a body only mentions a class.
        modules: named containers that are no class: they take part in titles, not in ``class_name``.
        namespaces: containers whose name nobody calls (``namespace a {``, ``extern "C" {``).
        branches: statements that hold definitions without naming them (``#ifdef``, ``if``, ``try``, ``class << self``).
        bodies: the node that holds the members of any of the above.
        imports: statements that bring in other files; more of them are told by ``syntax.is_import``.
        wrappers: nodes around one definition (decorators, ``export``, ``template<…>``, ``const f = …``).
        comments: comment types; ``attributes`` are siblings that belong to what follows them like comments.
        glue: too little to stand alone; joins what follows (``package x;``, ``private:``).
        bare: classes whose header says nothing by itself when no members precede the first method.
        closers: ends of something that opened before; they stay with what precedes them.
        receivers: parameters that are not counted.
    """

    name: str
    functions: frozenset[str]
    classes: frozenset[str]
    bodies: frozenset[str]
    imports: frozenset[str] = frozenset()
    bodiless: frozenset[str] = frozenset()
    needs_body: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    branches: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()
    comments: frozenset[str] = frozenset({"comment"})
    attributes: frozenset[str] = frozenset()
    glue: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    closers: frozenset[str] = frozenset()
    receivers: frozenset[str] = frozenset()


def node_types(names: str) -> frozenset[str]:
    """Split a list of node types."""
    return frozenset(names.split())


def _grammars() -> dict[str, Grammar]:
    """Read the tables; TSX is TypeScript to the letter."""
    tables = cast(dict[str, dict[str, str]], yaml.load(_TABLES.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
    tables["tsx"] = tables["typescript"]
    return {
        name: Grammar(name=name, **{field: node_types(names) for field, names in table.items()})
        for name, table in tables.items()
    }


GRAMMARS = _grammars()

# Headers are called .h in both languages; only what is in them tells.
_CPP_HEADER = re.compile(
    r"^[ \t]*(?:namespace\b|template[ \t]*<|class[ \t]+\w|public:|private:|using[ \t]+\w)", re.MULTILINE
)


def grammar_of(language: str, path: str, text: str) -> Grammar | None:
    """Return the tables for a document of that language, or ``None`` for a language that no grammar is known for."""
    if language == "typescript" and path.lower().endswith(".tsx"):
        return GRAMMARS["tsx"]
    if language == "c" and path.lower().endswith(".h") and _CPP_HEADER.search(text):
        return GRAMMARS["cpp"]
    return GRAMMARS.get(language)


# A comment near the top that says so: Go's convention, protoc's, Meta's @generated and their many cousins.
_GENERATED_MARK = re.compile(
    r"^[ \t]*(?:#|//|/\*|\*|--|;|<!--|%)(?=[^\n]*(?:@generated\b|generated\b[^\n]*\bdo not (?:edit|modify)\b))",
    re.IGNORECASE | re.MULTILINE,
)
_MARK_LINES = 10
_MARK_CHARACTERS = 4_000


def is_generated(text: str) -> bool:
    """Say whether a comment in the first lines declares source code to be generated."""
    head = "\n".join(text[:_MARK_CHARACTERS].split("\n")[:_MARK_LINES])
    return _GENERATED_MARK.search(head) is not None
