"""The language of source code, and the node types of each tree-sitter grammar.

The tables are in ``grammars.yaml``: ``syntax`` reads single nodes with them, ``regions`` whole files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import PurePosixPath
from typing import cast

import yaml

from nornweave.read.worth import is_empty_page

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
"""Of the languages whose facts are read as well (``disagree.facts.code``)."""
FILE_NAMES = {"rakefile": "ruby", "gemfile": "ruby", "vagrantfile": "ruby", "podfile": "ruby", "fastfile": "ruby"}

OTHER_EXTENSIONS = {
    "objc": "m mm",
    "scala": "scala sc sbt",
    "lua": "lua",
    "perl": "pl pm t psgi",
    "elixir": "ex exs",
    "shell": "sh bash zsh ksh bats",
    "sql": "sql",
    "hcl": "hcl tf tfvars",
    "css": "css scss less",
    "json": "json jsonc",
    "yaml": "yaml yml",
    "dockerfile": "dockerfile containerfile",
    "vue": "vue",
    "svelte": "svelte",
    "astro": "astro",
    "marko": "marko",
    "webpage": "html htm",
    "protobuf": "proto",
    "graphql": "graphql gql graphqls",
    "cmake": "cmake",
}
"""Of languages that are only cut into chunks; the last three have no grammar and are cut at blank lines."""
OTHER_FILE_NAMES = {"dockerfile": "dockerfile", "containerfile": "dockerfile", "cmakelists.txt": "cmake"}

PROGRAMS = tuple(EXTENSIONS)
C_FAMILY = frozenset({"c", "cpp", "objc"})
LANGUAGES = (*EXTENSIONS, *OTHER_EXTENSIONS)


def _by_suffix(table: dict[str, str]) -> dict[str, str]:
    return {f".{ending}": language for language, endings in table.items() for ending in endings.split()}


_BY_EXTENSION, _BY_OTHER_EXTENSION = _by_suffix(EXTENSIONS), _by_suffix(OTHER_EXTENSIONS)


INTERPRETERS = {
    **dict.fromkeys(("sh", "bash", "dash", "ksh", "ash", "bats"), ".sh"),
    **dict.fromkeys(("python", "pypy", "uv", "sage"), ".py"),
    **dict.fromkeys(("node", "nodejs", "zx"), ".js"),
    **dict.fromkeys(("deno", "bun", "ts-node", "tsx"), ".ts"),
    **dict.fromkeys(("ruby", "jruby", "rake", "macruby"), ".rb"),
    **dict.fromkeys(("perl", "raku"), ".pl"),
    **dict.fromkeys(("compdef", "autoload"), ".zsh"),  # what a completion of zsh begins with
    **dict.fromkeys(("tclsh", "wish", "expect"), ".tcl"),
    **{name: f".{name}" for name in ("zsh", "fish", "php", "lua", "groovy", "swift", "awk", "sed", "jq", "nix")},
    **{"escript": ".erl", "elixir": ".exs", "julia": ".jl", "kotlin": ".kts", "luajit": ".lua", "make": ".mk"},
    **{"Rscript": ".r", "gawk": ".awk", "pwsh": ".ps1", "scala": ".scala", "runghc": ".hs", "runhaskell": ".hs"},
}
"""What a ``#!`` line starts → the suffix of files in its language; ``language_of`` makes a language of it."""

_SHEBANG = re.compile(
    r"\ufeff?#(?:(?=compdef\b|autoload\b)|![ \t]*|(?=/(?:usr/|local/)*bin/))(?:\S*/)?"
    r"(?:env[ \t]+(?:-\S+[ \t]+|\w+=\S*[ \t]+)*(?:\S*/)?)?"
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
_PERL = re.compile(
    r"\A#!.*\bperl|^[ \t]*(?:(?:use|no|package|require)[ \t]+[\w:.'\"]+[^;\n]*;|(?:my|our)[ \t]*[$@%(]|sub[ \t]+\w)",
    re.MULTILINE,
)
"""What a file called as Perl's must hold: Prolog is called ``.pl`` as well, and ``.t`` may be anything."""
PAGES = frozenset({".html", ".htm"})
UNTOLD = PAGES | {".t"}
"""Suffixes of a language that only the text of a file shows."""


def language_of(path: str, text: str = "") -> str | None:
    """Return the programming language of a file; ``None`` if no parser knows it.

    Args:
        text: of the file. It decides if a suffix stands for several languages, and its ``#!`` line decides if the name
            shows none. Without a text the name alone decides.
    """
    name = PurePosixPath(path).name.lower()
    suffix = PurePosixPath(name).suffix
    for pattern, language in _BY_CONTENT.get(suffix, ()) if text else ():
        if pattern.search(text):
            return language
    known = FILE_NAMES.get(name) or _BY_EXTENSION.get(suffix)
    return known or _BY_EXTENSION.get(program_suffix(text))


def program_suffix(text: str) -> str:
    """Return the file suffix of the language in a ``#!`` line; empty if there is none or it is unknown."""
    started = _SHEBANG.match(text)
    return INTERPRETERS.get(started["name"], "") if started else ""


_TEMPLATE_OF_YAML = re.compile(r"(?<=\.)(ya?ml)\.(?:j2|jinja2?|tpl|tmpl|gotmpl)$")
"""YAML is read without what a template writes into it (``parsing``)."""
_EXAMPLE = re.compile(r"[.-](?:example|sample|dist|template|defaults?)$")


_UNSHOWN = re.compile(
    r"<(script|style)\b[^<>]*>(?P<code>.*?)(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)|<title\b.*?(?:</title\s*>|\Z)|<[^<>]*>",
    re.DOTALL | re.IGNORECASE,
)
_SHOWN_SHARE, _CODE_LINES = 10, 3


_STATEMENT = re.compile(
    r"\{%-?\s*(?!(?:end)?(?:comment|raw|verbatim)\b)\w|<\?(?:php|=)|<%[=-]?\s|\{\{-?\s*(?:define|block|partial|template|range|if|with|end)\b|\{\{[#/>]\w"
)
_QUOTED = re.compile(r"<(pre|code)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)


def is_template_page(html: str) -> bool:
    """Tell whether a program makes pages of HTML: its template has statements and does not only show values.

    A page with front matter, as site generators read it, has text of its own.
    """
    return not html.startswith("---") and _STATEMENT.search(_QUOTED.sub("", html)) is not None


def is_program_page(html: str) -> bool:
    """Tell whether a page of HTML is a template, an example or a program, with almost no visible text.

    It has some lines of script and style, and less than a tenth as much text; or no text at all, as on
    the page that an application fills.
    """
    if is_template_page(html) or is_empty_page(html):
        return True
    code = "\n".join(found["code"] or "" for found in _UNSHOWN.finditer(html))
    shown = _UNSHOWN.sub(" ", html).split()
    is_long = sum(bool(line.strip()) for line in code.splitlines()) >= _CODE_LINES
    return is_long and _SHOWN_SHARE * sum(map(len, shown)) < len("".join(code.split()))


def below_example(name: str) -> str:
    """Return a file name in lower case without marks of an example: ``app.yml`` of ``app.yml.sample``."""
    return _EXAMPLE.sub("", name)


def code_format_of(path: str, text: str = "") -> str | None:
    """Return the language by which a file is cut into chunks; ``None`` if name and text show none.

    Args:
        text: as of ``language_of``.
    """
    name = _TEMPLATE_OF_YAML.sub(r"\1", below_example(PurePosixPath(path).name.lower()))
    suffix = PurePosixPath(name).suffix
    known = OTHER_FILE_NAMES.get(name) or _BY_OTHER_EXTENSION.get(suffix)
    if known == "perl" and (text or suffix in UNTOLD) and not _PERL.search(text):
        known = None
    if known == "webpage" and not is_program_page(text):
        known = None
    known = known or language_of(name, text) or OTHER_FILE_NAMES.get(name.partition(".")[0])  # Dockerfile.dev
    return known or _BY_OTHER_EXTENSION.get(program_suffix(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """The node types of one grammar that matter for chunking.

    Attributes:
        name: of the grammar, as ``parsing.language`` takes it.
        functions: functions and methods; without a body they are declarations, unless in ``bodiless``.
        classes: everything that has members and a name (struct, trait, impl, interface, enum, module, …).
        needs_body: a class type that without a body only mentions a class.
        modules: named containers that are no class: they take part in titles, not in ``class_name``.
        namespaces: containers whose name nobody uses (``namespace a {``, ``extern "C" {``).
        branches: statements that hold definitions without naming them (``#ifdef``, ``if``, ``try``, ``class << self``).
        bodies: the node that holds the members of any of the above.
        holders: values whose parts may be definitions (``export default { methods: { … } }``).
        imports: statements that bring in other files; more of them are told by ``syntax.is_import``.
        wrappers: nodes around one definition (decorators, ``export``, ``template<…>``, ``const f = …``).
        packages: nodes without a body that name all following code.
        documents: comments that belong to a definition below them across blank lines; a heading names them elsewhere.
        comments: comment types; ``attributes`` are siblings that belong to what follows them like comments.
        glue: too little to stand alone; joins what follows (``package x;``, ``private:``).
        bare: classes whose header says nothing by itself when no members precede the first method.
        closers: ends of something that opened before; they stay with what precedes them.
        receivers: parameters that are not counted.
        calls: calls that may define: ``describe("a ledger", () => {``, ``task :build do``, ``tasks.register("x") {``.
        given: nodes on the way from a call to the function that it is given.
        function_words, class_words: calls of these words define what their first argument names (Elixir).
        values: nodes that name a value, beside those whose types say so (``syntax.value_name``).
        pairs: nodes that name a part of a value: keys, attributes.
        names: nodes inside a definition that name it, where no field does.
        announcements: nodes that name something that is defined elsewhere.
        prototypes: statements that may hold a prototype, which readers of a header need.
    """

    name: str
    functions: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    bodies: frozenset[str] = frozenset()
    holders: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()
    bodiless: frozenset[str] = frozenset()
    needs_body: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    branches: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()
    comments: frozenset[str] = frozenset({"comment"})
    documents: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    glue: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    closers: frozenset[str] = frozenset()
    receivers: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
    function_words: frozenset[str] = frozenset()
    class_words: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    announcements: frozenset[str] = frozenset()
    prototypes: frozenset[str] = frozenset()
    # Unions that are asked for at every node.
    holding: frozenset[str] = field(init=False)
    running: frozenset[str] = field(init=False)
    defining: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Unite sets of node types that are looked up together."""
        object.__setattr__(self, "holding", self.bodies | self.branches | self.comments)
        object.__setattr__(self, "running", self.given | self.functions | self.bodies)
        object.__setattr__(self, "defining", self.functions | self.classes | self.wrappers)

    @property
    def defines(self) -> bool:
        """Tell whether the language has named definitions. Markup and lists of commands have none."""
        return bool(self.functions | self.classes | self.calls | self.pairs)


def node_types(names: str) -> frozenset[str]:
    """Split a list of node types."""
    return frozenset(names.split())


def _grammars() -> dict[str, Grammar]:
    """Read the tables. TSX has the same table as TypeScript."""
    tables = cast(dict[str, dict[str, str]], yaml.load(_TABLES.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
    tables["tsx"] = tables["typescript"]
    return {
        name: Grammar(name=name, **{field: node_types(names) for field, names in table.items()})
        for name, table in tables.items()
    }


GRAMMARS = _grammars()


def grammar_of(language: str, path: str, text: str) -> Grammar | None:
    """Return the tables for a document's language; ``None`` if there is no grammar for it."""
    if language == "typescript" and path.lower().endswith(".tsx"):
        return GRAMMARS["tsx"]
    if language == "c":  # by its path alone
        language = language_of(path, text) or language
    return GRAMMARS.get(language)
