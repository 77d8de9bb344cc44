"""Which language source code is in, and what each tree-sitter grammar calls its nodes.

The tables are in ``grammars.yaml``: ``syntax`` reads single nodes with them, ``regions`` whole files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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


INTERPRETERS = {
    **dict.fromkeys(("sh", "bash", "dash", "ksh", "ash", "bats"), ".sh"),
    **dict.fromkeys(("python", "pypy", "uv", "sage"), ".py"),
    **dict.fromkeys(("node", "nodejs", "zx"), ".js"),
    **dict.fromkeys(("deno", "bun", "ts-node", "tsx"), ".ts"),
    **dict.fromkeys(("ruby", "jruby", "rake", "macruby"), ".rb"),
    **dict.fromkeys(("perl", "raku"), ".pl"),
    **dict.fromkeys(("tclsh", "wish", "expect"), ".tcl"),
    **{name: f".{name}" for name in ("zsh", "fish", "php", "lua", "groovy", "swift", "awk", "sed", "jq", "nix")},
    **{"escript": ".erl", "elixir": ".exs", "julia": ".jl", "kotlin": ".kts", "luajit": ".lua", "make": ".mk"},
    **{"Rscript": ".r", "gawk": ".awk", "pwsh": ".ps1", "scala": ".scala", "runghc": ".hs", "runhaskell": ".hs"},
}
"""What a ``#!`` line starts → the suffix of files in its language; ``language_of`` makes a language of it."""

_SHEBANG = re.compile(
    r"\ufeff?#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+|\w+=\S*[ \t]+)*(?:\S*/)?)?"
    r"(?P<name>[A-Za-z][\w+-]*?)(?:-?\d[\d.]*)?(?:\s|$)"
)
# What a suffix that several languages share holds; the first that fits. ``None``: source code of none.
_BY_CONTENT: Mapping[str, tuple[tuple[re.Pattern[str], str | None], ...]] = {
    ".h": (
        (
            re.compile(r"^[ \t]*(?:@(?:interface|protocol|class|import|property)\b|#[ \t]*import\b)", re.MULTILINE),
            "objc",
        ),
        (
            re.compile(
                r"^[ \t]*(?:namespace\b|template[ \t]*<|class[ \t]+\w|public:|private:|using[ \t]+\w)", re.MULTILINE
            ),
            "cpp",
        ),
    ),
    ".ts": ((re.compile(r"\s*<(?:\?xml|!DOCTYPE)\b"), None),),  # translations of Qt
}


def language_of(path: str, text: str = "") -> str | None:
    """Name the programming language of a file; ``None`` when it is none that is parsed.

    Args:
        text: of the file. It decides where a suffix stands for several languages, and its ``#!`` line where the name
            says nothing. Without it the name alone decides.
    """
    name = PurePosixPath(path).name.lower()
    suffix = PurePosixPath(name).suffix
    for pattern, language in _BY_CONTENT.get(suffix, ()) if text else ():
        if pattern.search(text):
            return language
    known = FILE_NAMES.get(name) or _BY_EXTENSION.get(suffix)
    return known or _BY_EXTENSION.get(program_suffix(text))


def program_suffix(text: str) -> str:
    """Return the suffix of files in the language that a ``#!`` line names; empty without one that is known."""
    started = _SHEBANG.match(text)
    return INTERPRETERS.get(started["name"], "") if started else ""


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


def grammar_of(language: str, path: str, text: str) -> Grammar | None:
    """Return the tables for a document of that language, or ``None`` for a language that no grammar is known for."""
    if language == "typescript" and path.lower().endswith(".tsx"):
        return GRAMMARS["tsx"]
    if language == "c":  # by its path alone
        language = language_of(path, text) or language
    return GRAMMARS.get(language)
