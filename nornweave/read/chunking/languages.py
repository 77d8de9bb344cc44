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

from nornweave.core.files.yaml_files import Pairs, load_pairs
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
    **dict.fromkeys(("sh", "bash", "dash", "ksh", "ash", "bats", "shell", "shell-script"), ".sh"),
    **dict.fromkeys(("python", "pypy", "uv", "sage"), ".py"),
    **dict.fromkeys(("node", "nodejs", "zx", "javascript", "js"), ".js"),
    **dict.fromkeys(("deno", "bun", "ts-node", "tsx"), ".ts"),
    **dict.fromkeys(("ruby", "jruby", "rake", "macruby"), ".rb"),
    **dict.fromkeys(("perl", "raku", "cperl"), ".pl"),
    **dict.fromkeys(("yaml", "cloud-config"), ".yaml"),
    **dict.fromkeys(("compdef", "autoload"), ".zsh"),  # what a completion of zsh begins with
    **dict.fromkeys(("tclsh", "wish", "expect"), ".tcl"),
    **{name: f".{name}" for name in ("zsh", "fish", "php", "lua", "groovy", "swift", "awk", "sed", "jq", "nix")},
    **{"escript": ".erl", "elixir": ".exs", "julia": ".jl", "kotlin": ".kts", "luajit": ".lua", "make": ".mk"},
    **{"makefile": ".mk", "c": ".c", "c++": ".cpp"},
    **{"Rscript": ".r", "gawk": ".awk", "pwsh": ".ps1", "scala": ".scala", "runghc": ".hs", "runhaskell": ".hs"},
}
"""What a ``#!`` line starts or an editor is told → the suffix of its files; ``language_of`` makes a language of it."""

_SHEBANG = re.compile(
    r"\ufeff?#(?:(?=compdef\b|autoload\b|cloud-config\b)|![ \t]*|(?=/(?:usr/|local/)*bin/))(?:\S*/)?"
    r"(?:env[ \t]+(?:-\S+[ \t]+|\w+=\S*[ \t]+)*(?:\S*/)?)?"
    r"(?P<name>[A-Za-z][\w+-]*?)(?:-?\d[\d.]*)?(?:\s|$)"
)
_MODELINE = re.compile(
    r"(?:[^\n]{0,200}\n){0,4}?[^\w\n]{1,4}(?:[^\n]{0,200}?-\*-[ \t]*(?:(?:[\w-]+:[^;\n]{0,80};[ \t]*)*mode:[ \t]*)?"
    r"|[ \t]*vim?:[^\n]{0,60}?\b(?:ft|filetype|syntax)=)(?P<name>\w[\w+-]*?)(?:-mode|-ts-mode)?(?![\w+-])",
    re.IGNORECASE,
)
_KEY, _WORDED, _MOST_YAML = re.compile(r"^[\w.-]+:(?:\s|$)", re.MULTILINE), re.compile(r"[\w.-]+"), 64 * 1024
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
    ".ts": ((re.compile(r"\A\ufeff?\s*<(?:\?xml|!DOCTYPE)\b"), None),),  # translations of Qt
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
        text: the text of the file. When several languages use the suffix, the text decides. When the name of the file
            shows no language, the ``#!`` line decides. Without a text only the name counts.
    """
    name = PurePosixPath(path).name.lower()
    suffix = PurePosixPath(name).suffix
    for pattern, language in _BY_CONTENT.get(suffix, ()) if text else ():
        if pattern.search(text):
            return language
    known = FILE_NAMES.get(name) or _BY_EXTENSION.get(suffix)
    return known or _BY_EXTENSION.get(program_suffix(text))


def program_suffix(text: str) -> str:
    """Return the file suffix of the language in a ``#!`` line or in a line for editors.

    The result is empty if there is no such line or its language is unknown.
    """
    started = _SHEBANG.match(text) or _MODELINE.match(text)
    return INTERPRETERS.get(started["name"]) or INTERPRETERS.get(started["name"].lower(), "") if started else ""


def is_yaml_mapping(text: str) -> bool:
    """Tell whether a text is YAML with several keys, all of them words."""
    if len(text) > _MOST_YAML or not _KEY.search(text):
        return False
    try:
        read = load_pairs(text)
    except (yaml.YAMLError, ValueError):
        return False
    keys = [str(key) for key, _ in read.items()] if isinstance(read, Pairs) else []
    return len(keys) > 1 and all(map(_WORDED.fullmatch, keys))


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
_OF_LAYOUTS = re.compile(r"(?:^|/)_(?:layouts|includes)/")
_LAYOUT = re.compile(r"\{\{-?\s*content\b[^{}]*\}\}")
_QUOTED = re.compile(r"<(pre|code)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)


def is_template_page(html: str, path: str = "") -> bool:
    """Tell whether HTML is a template from which a program makes pages, with statements and not only inserted values.

    A page with front matter is a template only if it is the layout of other pages, because a site generator reads
    other pages as texts. Every file in Jekyll's folders for layouts and parts of pages is a template.
    """
    if _OF_LAYOUTS.search(path):
        return True
    states = _LAYOUT if html.startswith("---") else _STATEMENT
    return states.search(_QUOTED.sub("", html)) is not None


def is_program_page(html: str, path: str = "") -> bool:
    """Tell whether a page of HTML is a template, an example or a program, with almost no visible text.

    The page has some lines of script and style, and less than a tenth as much text. A page without any text, which an
    application fills, counts too.
    """
    if is_template_page(html, path) or is_empty_page(html):
        return True
    code = "\n".join(found["code"] or "" for found in _UNSHOWN.finditer(html))
    shown = _UNSHOWN.sub(" ", html).split()
    is_long = sum(bool(line.strip()) for line in code.splitlines()) >= _CODE_LINES
    return is_long and _SHOWN_SHARE * sum(map(len, shown)) < len("".join(code.split()))


def below_example(name: str) -> str:
    """Return a file name in lower case without the marks of an example: ``app.yml.sample`` → ``app.yml``."""
    return _EXAMPLE.sub("", name)


def code_format_of(path: str, text: str = "") -> str | None:
    """Return the language by which a file is cut into chunks; ``None`` if neither name nor text shows a language.

    Args:
        text: the text of the file. It has the same influence as in ``language_of``.
    """
    name = _TEMPLATE_OF_YAML.sub(r"\1", below_example(PurePosixPath(path).name.lower()))
    suffix = PurePosixPath(name).suffix
    known = OTHER_FILE_NAMES.get(name) or _BY_OTHER_EXTENSION.get(suffix)
    if known == "perl" and (text or suffix in UNTOLD) and not _PERL.search(text):
        known = None
    if known == "webpage" and not is_program_page(text, path):
        known = None
    known = known or language_of(name, text) or OTHER_FILE_NAMES.get(name.partition(".")[0])  # Dockerfile.dev
    known = known or _BY_OTHER_EXTENSION.get(program_suffix(text))
    return known or ("yaml" if not suffix and is_yaml_mapping(text) else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """The node types of one grammar that matter for chunking.

    Attributes:
        name: the name of the grammar, as ``parsing.language`` takes it.
        functions: functions and methods. Without a body they are declarations, unless they are in ``bodiless``.
        classes: definitions that have a name and members (struct, trait, impl, interface, enum, module, …).
        needs_body: class types that only mention a class if they have no body.
        modules: named containers that are not classes. Their names are in titles, but not in ``class_name``.
        namespaces: containers whose names are not used for their members (``namespace a {``, ``extern "C" {``).
        branches: statements that contain definitions without giving them a name (``#ifdef``, ``if``, ``try``, ``class
            << self``).
        bodies: nodes that hold the members of any type above.
        holders: values that may contain definitions (``export default { methods: { … } }``).
        imports: statements that bring in other files. ``syntax.is_import`` finds further ones.
        wrappers: nodes around one definition (decorators, ``export``, ``template<…>``, ``const f = …``).
        packages: nodes without a body that name all code after them.
        documents: comments that document the definition below them, even across blank lines.
        comments: types of comments. The types in ``attributes`` belong to the next node in the same way as comments.
        glue: nodes that are too little to stand alone and join the next node (``package x;``, ``private:``).
        bare: classes whose header means nothing alone if no members precede the first method.
        closers: ends of an earlier construct. They stay with the text before them.
        receivers: parameters that are not counted, such as ``self``.
        calls: calls that may define something: ``describe("a ledger", () => {``, ``task :build do``,
            ``tasks.register("x") {``.
        given: nodes between a call and the function that is its argument.
        function_words, class_words: a call of one of these words defines the function or class that its first argument
            names (Elixir).
        values: nodes that name a value, in addition to those that ``syntax.value_name`` recognises by their type.
        pairs: nodes that name a part of a value, such as keys and attributes.
        names: nodes that name the definition in which they are, for grammars without a field for the name.
        announcements: nodes that name a function or a type whose definition is elsewhere.
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
        """Join sets of node types that are looked up together."""
        object.__setattr__(self, "holding", self.bodies | self.branches | self.comments)
        object.__setattr__(self, "running", self.given | self.functions | self.bodies)
        object.__setattr__(self, "defining", self.functions | self.classes | self.wrappers)

    @property
    def defines(self) -> bool:
        """Tell whether the language has named definitions. Markup and lists of commands have no such definitions."""
        return bool(self.functions | self.classes | self.calls | self.pairs)


def node_types(names: str) -> frozenset[str]:
    """Return the node types in a text, which are separated by blanks."""
    return frozenset(names.split())


def _grammars() -> dict[str, Grammar]:
    """Read the tables of node types by language. TSX has the same table as TypeScript."""
    tables = cast(dict[str, dict[str, str]], yaml.load(_TABLES.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
    tables["tsx"] = tables["typescript"]
    return {
        name: Grammar(name=name, **{field: node_types(names) for field, names in table.items()})
        for name, table in tables.items()
    }


GRAMMARS = _grammars()


def grammar_of(language: str, path: str, text: str) -> Grammar | None:
    """Return the table for the language of a document; ``None`` if there is no grammar for it."""
    if language == "typescript" and path.lower().endswith(".tsx"):
        return GRAMMARS["tsx"]
    if language == "c":  # by its path alone
        language = language_of(path, text) or language
    return GRAMMARS.get(language)
