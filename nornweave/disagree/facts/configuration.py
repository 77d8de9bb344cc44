"""Extract facts from configuration and manifests: YAML, JSON, TOML, INI, ``.env``, Dockerfiles.

Read the keys of a configuration file with their values: JSON by its brackets, other formats line by line.

They are read without a grammar: a passage may begin and end anywhere, and one YAML file in six is a template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from itertools import islice
from pathlib import PurePosixPath

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Fact
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.passage import SECRET, Passage, fact_of
from nornweave.disagree.facts.values import Value
from nornweave.disagree.facts.versions import Requirement, read_requirement
from nornweave.read.chunking.languages import language_of

MAX_DEPTH = 40
MAX_LINE = 1000
"""Characters; longer lines hold data."""

MAX_VALUE = 200
MAX_BLANKS = 4
"""In the text of a value: more make a description."""

_LOGIN = lazy_pattern(r"://[^/\s:@]{0,100}:[^/\s@]{1,200}@|-----BEGIN ")
_NUMBER = lazy_pattern(
    r"[-+]?(?:0x[0-9a-fA-F]{1,16}|[\d_]{1,30}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?)"
    r"(?: ?[A-Za-zµ%]{1,12}|(?:[hms]{1,2}\d{1,6}){1,3}m?s)?$"
)
_WORDS = frozenset("true false yes no on off null none nil undefined unlimited infinity ~".split())  # noqa: SIM905
_DYNAMIC = ("${", "{{", "<%", "$(", "%(", "}}")
_WITH_FALLBACK = lazy_pattern(
    r"^\"?\$\{(?P<name>[A-Za-z_][\w.]{0,79})(?::-|:=|:(?![?+])|-)(?P<value>[^{}$]{1,100})\}\"?$"
)
# ``port = integer(min=1, default=6379)`` of a specification (configobj): what may be set, and what holds without.
_SPECIFIED = lazy_pattern(
    r"[a-z_]\w{0,40}\((?:[^\n]{0,200},)?\s*default\s*=\s*(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s,()\"']+)\)$"
)
_EXAMPLE = lazy_pattern(r"example|sample|template|\.dist\b", re.IGNORECASE)
_DEFAULTS = lazy_pattern(r"(?:^|[/._-])defaults?(?:[/._-]|$)|(?:^|/)values\.ya?ml$", re.IGNORECASE)
_PROSE_KEYS = frozenset("about description title summary name label help comment message text documentation".split())  # noqa: SIM905
_DEFINITION = frozenset({"type", "default"})
_STRUCTURE = frozenset({"properties", "fields", "options", "items", "schema", "definitions", "docker"})

MAX_FOUND = 20
"""Requirements that lines of one kind give."""

# A version alone; a requirement in quotes, of one or two clauses.
_V = r"(?P<version>v?\d[\w.]{0,30})"
_REQ = r"[\"'](?P<version>[<>=~^ ]{0,4}\d[\w.]{0,30}(?:[\"'],[ ]?[\"'][<>=~ ]{1,4}\d[\w.]{0,30})?)[\"']"
_QUOTED = r"[\"'](?P<version>[^\"'\n]{1,80})[\"']"
# Names of files, lower case (``*.x`` is any name that ends so), how they say a version, and of what.
_VERSION_LINES = tuple(
    (files.split(), lazy_pattern(pattern, re.MULTILINE), name)
    for files, pattern, name in (
        ("setup.py pyproject.toml", rf"(?:python_requires|^requires-python)[ ]?=[ ]?{_QUOTED}", "python"),
        ("setup.cfg", r"^python_requires[ ]?=[ ]?(?P<version>[^\n]{1,80})", "python"),
        ("pyproject.toml", rf"^python[ ]?=[ ]?{_QUOTED}", "python"),
        ("package.json", rf"\"engines\"\s*:\s*\{{[^{{}}]{{0,200}}?\"node\"\s*:\s*{_QUOTED}", "node"),
        ("composer.json", rf"\"require\"\s*:\s*\{{[^{{}}]{{0,400}}?\"php\"\s*:\s*{_QUOTED}", "php"),
        ("cargo.toml", rf"^rust-version[ ]?=[ ]?{_QUOTED}", "rust"),
        ("go.mod", rf"^go[ ]{_V}", "go"),
        ("gemfile", rf"^[ ]{{0,8}}ruby[ (][ ]{{0,4}}{_REQ}", "ruby"),
        ("*.gemspec", rf"required_ruby_version[ ]{{0,4}}=[^\n\"']{{0,40}}{_REQ}", "ruby"),
        ("pom.xml",
         rf"<(?:maven\.compiler\.(?:source|release|target)|java\.version|jdk\.version)>\s{{0,9}}{_V}", "java"),
        ("*.gradle *.gradle.kts", rf"\b(?:source|target)Compatibility[ ]?=?[ ]?[\"']?(?:JavaVersion\.VERSION_)?{_V}",
         "java"),
        ("cmakelists.txt", rf"^[ \t]*(?i:cmake_minimum_required)[ ]?\(\s*VERSION\s+{_V}", "cmake"),
        ("meson.build", rf"\bmeson_version\s*:\s*{_QUOTED}", "meson"),
        ("*.csproj *.fsproj *.vbproj directory.build.props",
         r"<TargetFrameworks?>(?:[^<]{0,99}?;)??\s{0,9}net(?:coreapp)?(?P<version>\d+\.\d+)", "dotnet"),
        ("*.gradle *.gradle.kts", rf"\bminSdk(?:Version)?\b[\"']?[ ]?[=,(]?[ ]?{_V}", "api level"),
        ("package.swift", rf"^//[ ]?swift-tools-version:[ ]?{_V}", "swift"),
        ("mix.exs", rf"^[ \t]*elixir:[ ]{_REQ}", "elixir"),
        ("pubspec.yaml", rf"^environment:\s*(?:[^\n]*\n[ ]+)??sdk:[ ]?{_QUOTED}", "dart"),
    )
)  # fmt: skip
_ASIDE = lazy_pattern(
    r"/(?:docs?|[\w.-]*tests?(?:\.[\w.-]*)?|examples?|demos?|samples?|benchmarks?|integration|scripts|tools)/",
    re.IGNORECASE,
)
_TOOLS = lazy_pattern(
    r"(?:^|/)\.(?:github|circleci|gitlab|buildkite|devcontainer|vscode|idea)/|/\.(?!env)[^/]*$|/(?:tsconfig|tox|codecov|mkdocs|"
    r"requirements|renovate|appveyor|azure-pipelines|biome|lerna|nx|turbo|bandit|chart|pubspec)[^/]*$", re.IGNORECASE
)  # fmt: skip
"""Files of programs that build, check and publish: their keys are nobody's settings."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value.

    Attributes:
        key: the key as it is written, without quotes.
        value: the value as it is written, without a comment.
        start, end: the offsets of the start of the key and the end of the value in the text.
        parents: the keys above, outermost first.
        is_remark: whether the entry is commented out.
    """

    key: str
    value: str
    start: int
    end: int
    parents: tuple[str, ...] = ()
    is_remark: bool = False


# Strings that are not closed end with their line.
_TOKEN = lazy_pattern(
    r"\"(?P<text>(?:[^\"\\\n]|\\[^\n]?)*+)(?:\"|(?=\n)|\Z)(?P<colon>[ \t\r\n]{0,80}:)?"
    r"|(?P<open>[{\[])|(?P<close>[}\]])|(?P<remark>//[^\n]*)|(?P<word>[\w.+-]++)"
)


def bracket_entries(text: str) -> Iterator[Entry]:
    """Yield the keys of JSON with plain values. Members of lists are data and are left out."""
    key: tuple[str, int] | None = None
    stack: list[str] = []
    for token in _TOKEN.finditer(text):
        if token["colon"]:
            key = token["text"], token.start()
            continue
        if token["open"]:
            stack.append("[" if token["open"] == "[" else key[0] if key else "")
        elif token["close"] and stack:
            stack.pop()
        elif key is not None and not token["close"] and "[" not in stack and len(stack) <= MAX_DEPTH:
            yield Entry(key[0], token[0], key[1], token.end(), tuple(filter(None, stack)))
        key = None


_SETTING = lazy_pattern(
    r"(?P<lead>[ \t]*(?:-[ \t]+){0,4})(?:(?:export|readonly|ENV|ARG|set)[ \t]+)?"
    r"(?P<quote>[\"']?)(?P<key>\d*[A-Za-z_@](?:[\w.\-/@]|[ ](?=[^\n=]{0,79}:|[^\n\"]{0,79}\"[ \t]*=)){0,79}?)"
    r"(?P=quote)[ \t]{0,40}(?::(?=[ \t]|$)|[:?+]?=(?!=))[ \t]*"
)
_SECTION = lazy_pattern(r"[ \t]*\[{1,2}(?P<name>[\w.\-\"' :/\t]{1,120})\]{1,2}[ \t]*(?:[#;][^\n]*)?$")
_BLOCK_SCALAR = lazy_pattern(r"[|>][+-]?\d?")
_REMARKS = ("#", ";", "!", "//")
# A setting that is commented out: a name and one value, of which no sentence consists.
_COMMENTED = lazy_pattern(
    r"[ \t]*[#;]+[ \t]*(?:export[ \t]+)?(?P<key>[a-z_][\w.-]{0,79}(?=[ \t]*:)|[A-Za-z_][\w.-]{0,79}(?=[ \t]*=))[ \t]*"
    r"(?::[ \t]+|=(?!=)[ \t]*)(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'\[{&*!|>][^\s]*)[ \t]*(?:[#;].*)?\r?$"
)
_COMMENT = lazy_pattern(r"(?P<quoted>\"[^\"\n]*\"|'[^'\n]*')|(?:(?<![^ \t])[#;][^\n]*)")
"""A string in quotes, which may hold the mark of a comment; or a comment, at the start or behind a blank."""


def line_entries(text: str) -> Iterator[Entry]:
    """Yield the settings of YAML, TOML, INI and similar formats in order, each with the sections above it.

    ``- name: TIMEOUT`` with ``value: 30`` below it is a setting ``TIMEOUT``.
    """
    above: list[tuple[int, tuple[str, ...]]] = []
    scalar, at = -1, 0
    named: tuple[int, str] | None = None
    for line in text.split("\n"):
        start, bare = at, line.strip(" \t\r")
        at += len(line) + 1
        if not bare or len(line) > MAX_LINE or bare.startswith(_REMARKS):
            if len(line) <= MAX_LINE and (said := _COMMENTED.match(line)):
                yield Entry(said["key"], said["value"], start + said.start("key"), start + said.end("value"), (), True)
            continue
        if header := _SECTION.match(line.rstrip("\r")):
            above = [(-1, tuple(part for one in re.split(r"[.:]", header["name"]) if (part := one.strip("\"' "))))]
        match = _SETTING.match(line)
        column = len(match["lead"]) if match else 0
        if match is None or (0 <= scalar < column):  # inside of a text
            continue
        scalar = -1
        while above and above[-1][0] >= column:
            above.pop()
        value = _COMMENT.sub(lambda one: one["quoted"] or "", line[match.end() :]).strip(" \t\r\\")
        parents = tuple(key for _, keys in above for key in keys)
        entry = Entry(match["key"], value, start + match.start("key"), start + match.end() + len(value), parents)
        if _BLOCK_SCALAR.fullmatch(value):
            scalar = column
        elif not value and len(above) < MAX_DEPTH:
            above.append((column, (entry.key,)))
        elif value and value[0] not in "&*!" and (value[0] not in "[{" or value[:2] in {"{{", "{%"}):
            if entry.key == "name":
                named = column, value.strip("\"'")
            is_named = named is not None and named[0] == column and entry.key in {"value", "default"}
            yield _renamed(entry, named[1]) if named and is_named else entry


def specified_entries(text: str) -> Iterator[Entry]:
    """Yield the defaults of a specification (configobj): ``port = integer(min=1, default=6379)``."""
    return (entry for entry in line_entries(text) if entry.value.endswith(")") and "default" in entry.value)


# ``Port 22``, ``worker_connections 768;``; of what is commented out one value, unlike sentences: ``# maxmemory 2gb``.
_DIRECTIVE = lazy_pattern(
    r"[ \t]*(?P<key>\d*[A-Za-z][\w-]{1,79})[ \t]+(?P<value>(?:\"[^\"\n]*\"|[^\s{}<>=:#;][^\s{}<>;]*)"
    r"(?:[ \t]+[^\s{}<>#;]+){0,7})[ \t]*;?[ \t]*(?:#.*)?\r?$"
)
_COMMENTED_DIRECTIVE = lazy_pattern(
    r"[ \t]*[#;]+[ \t]?(?P<key>\d*[A-Za-z][\w-]{1,79})[ \t]+"
    r"(?P<value>\"[^\"\n]*\"|(?:yes|no|on|off|true|false|none)|[/~.]?[\w.:/-]*\d[\w.:/%*-]*|/[^\s;]+)[ \t]*;?[ \t]*\r?$"
)
# ``;LogLevel info``: what is switched off by a mark alone, where sentences have a blank behind it.
_SWITCHED_OFF = lazy_pattern(
    r"[ \t]*[#;](?P<key>\d*[A-Za-z][\w-]{1,79})(?:[ \t]+(?P<value>\"[^\"\n]*\"|[^\s\"=:#;{}<>][^\s\"{}<>;]*"
    r"(?:[ \t]+[^\s{}<>;]+){0,2}?)(?<![.,?!]))?[ \t]*;?[ \t]*\r?$"
)
_SENTENCE = lazy_pattern(r"[ \t]*[#;]+[ \t]+\w")
MOSTLY = 0.7
"""Share of the lines above which they are a file's form."""
_BLOCK = lazy_pattern(r"[ \t]*(?:(?P<opens>[A-Za-z][\w-]*)\b[^{}#;\n]*\{|(?P<closes>\}))[ \t]*(?:#.*)?\r?$")


def directive_entries(text: str) -> Iterator[Entry]:
    """Yield the settings in lines ``key value``. If few lines have this form, yield those of ``line_entries`` instead.

    A line that opens a block, ``server {``, is the parent of the lines in the block. If all settings of a file are in
    comments, they are the comments without a blank after the comment mark. Sentences must then have such a blank.
    """
    lines = [line for line in text.split("\n") if len(line) <= MAX_LINE and line.strip() and not _BLOCK.match(line)]
    bare = [line for line in lines if not line.lstrip().startswith((*_REMARKS, "<"))]
    off = [line for line in lines if line.lstrip()[:1] in {"#", ";"} and line.lstrip()[1:2].isalnum()]
    is_off = len(off) * MOSTLY < len([*filter(_SWITCHED_OFF.match, off)]) and any(map(_SENTENCE.match, lines))
    if len(bare) * MOSTLY >= sum(_DIRECTIVE.match(line) is not None for line in bare) and (bare or not is_off):
        yield from line_entries(text)
        return
    above: list[str] = []
    at = 0
    for line in text.split("\n"):
        start, at = at, at + len(line) + 1
        if len(line) > MAX_LINE:
            continue
        if block := _BLOCK.match(line):
            if block["opens"]:
                above.append(block["opens"])
            elif above:
                above.pop()
        is_remark = line.lstrip().startswith(_REMARKS)
        commented = _SWITCHED_OFF if is_off else _COMMENTED_DIRECTIVE
        if (said := (commented if is_remark else _DIRECTIVE).match(line)) and said["value"]:
            yield Entry(
                said["key"], said["value"], start + said.start("key"), start + said.end("value"),
                tuple(above[:MAX_DEPTH]), is_remark,
            )  # fmt: skip


def _renamed(entry: Entry, name: str) -> Entry:
    """Return the entry beside ``name: X`` as a setting: ``value: 3`` → ``X: 3``, ``default: 3`` → ``X.default: 3``."""
    if entry.key == "value":
        return Entry(name, entry.value, entry.start, entry.end, entry.parents)
    return Entry(entry.key, entry.value, entry.start, entry.end, (*entry.parents, name))


def value_of(raw: str) -> Value | None:
    """Read a plain value of a configuration file, not an expression: ``30s``, ``"a"``, ``off``, ``a-b``.

    Returns:
        The value; ``None`` if the text is empty or an expression, is filled in later (``${NAME}``) or is too long.
    """
    text = raw.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    if quoted:
        text = text[1:-1]
    if len(text) > MAX_VALUE or any(mark in text for mark in _DYNAMIC) or _LOGIN.search(text):
        return None
    if quoted:
        return Value("string", text)
    if not text:
        return None
    if text.lower() in _WORDS:
        return read_value("null" if text == "~" else text)
    if _NUMBER.match(text):
        return read_value(text) or Value("string", text)
    return Value("string", text)


def is_secret(entry: Entry) -> bool:
    """Tell whether a setting may be a secret. Its value is never stored.

    ``max_tokens: 4096`` is not a secret, because its number counts tokens.
    """
    inner = entry.value.split()[:-1]  # ``proxy_set_header X-Api-Key …``
    names = "/".join((*entry.parents[-2:], entry.key, " ".join((*inner, "…"))))
    if not SECRET.search(names):
        return False
    last = [word for word in words_of(entry.key) if not word.isdigit()][-1:]
    is_count = re.fullmatch(r"[-+]?\d[\w.]*|true|false|yes|no|on|off", entry.value, re.IGNORECASE) is not None
    return not is_count or bool(last and SECRET.search(last[0]) and not last[0].endswith("s")) or "key" in last


def without_descriptions(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries without those that only describe a setting, if it is defined with its type and its default.

    For example, ``timeout: {type: {name: Int, minval: 0}, default: 3000}`` has only the entry with the default.
    """
    read = list(entries)
    keys: dict[tuple[str, ...], set[str]] = {}
    for entry in read:
        path = (*entry.parents, entry.key)
        for depth in range(1, len(path)):
            keys.setdefault(path[:depth], set()).add(path[depth])
    defined = {path for path, below in keys.items() if below >= _DEFINITION}
    return [
        entry
        for entry in read
        if (entry.parents not in defined and not any(entry.parents[:at] in defined for at in range(len(entry.parents))))
        or (entry.key == "default" and entry.parents in defined)
    ]


def setting_facts(passage: Passage, entry: Entry) -> Iterator[Fact]:
    """Yield the fact of an entry; two facts if it has a variable with a fallback (``timeout: ${TIMEOUT:30}``).

    Settings in example files or in comments have the form ``example``, because they are not in force.
    """
    if is_secret(entry):
        return
    if specified := _SPECIFIED.match(entry.value):
        value = value_of(specified["value"].strip("\"'"))
        found = value and fact_of(
            passage, name=entry.key, attribute="default", side="code", form="option", value=value, start=entry.start,
            end=entry.end, statement=passage.text[entry.start : entry.end], owner=" > ".join(entry.parents),
        )  # fmt: skip
        if found:
            yield found
        return
    fallback = _WITH_FALLBACK.match(entry.value)
    value = value_of(fallback["value"] if fallback else entry.value)
    if value is not None:
        for fact in _facts(passage, entry, value, fallback["name"] if fallback else ""):
            if fact is not None:
                yield fact


def _facts(passage: Passage, entry: Entry, value: Value, variable: str) -> Iterator[Fact | None]:
    made = partial(
        fact_of, passage, value=value, start=entry.start, end=entry.end, statement=passage.text[entry.start : entry.end]
    )
    if entry.is_remark or _EXAMPLE.search(PurePosixPath(passage.path).name):
        yield made(
            name=entry.key, attribute="setting", side="configuration", form="example", owner=" > ".join(entry.parents)
        )
        return
    if variable:
        yield made(name=variable, attribute="default", side="configuration", form="fallback")
    is_prose = value.kind == "string" and (value.text.count(" ") > MAX_BLANKS or entry.key.lower() in _PROSE_KEYS)
    if is_prose or (entry.key != "default" and "properties" in entry.parents):  # what else a schema says
        return
    if entry.key == "default" and entry.parents and entry.parents[-1] not in _STRUCTURE:
        *above, name = (key for key in entry.parents if key not in _STRUCTURE)
        yield made(name=name, attribute="default", side="code", form="option", owner=" > ".join(above))
        return
    attribute: Attribute = "default" if variable or _is_of_defaults(passage.path) else "setting"
    owner = " > ".join(entry.parents)
    yield made(name=entry.key, attribute=attribute, side="configuration", form="setting", owner=owner)


@lru_cache(maxsize=1024)
def _is_of_defaults(path: str) -> bool:
    return _DEFAULTS.search(path) is not None


@lru_cache(maxsize=1024)
def patterns_of(path: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the patterns for lines of files with this name, each with the subject of its requirement."""
    name = PurePosixPath(path).name.lower()
    return tuple(
        (pattern, thing) for files, pattern, thing in _VERSION_LINES if any(fnmatchcase(name, one) for one in files)
    )


@lru_cache(maxsize=1024)
def says_only_versions(path: str) -> bool:
    """Tell whether a file states only versions: a manifest, or settings of a tool that builds, checks or publishes."""
    return bool(patterns_of(path)) or _TOOLS.search(f"/{path}") is not None


def line_requirements(passage: Passage) -> Iterator[Fact]:
    """Yield the requirements in a manifest's lines. Manifests of tests, documentation and examples are not read."""
    is_aside = _ASIDE.search(f"/{passage.path.rpartition('/')[0]}/") is not None
    for pattern, name in () if is_aside else patterns_of(passage.path):
        for match in islice(pattern.finditer(passage.text), MAX_FOUND):
            requirement = read_requirement(
                re.sub(r"(?<=\d)_(?=\d)", ".", match["version"])
            )  # ``VERSION_1_8`` of Gradle
            if requirement is None:
                continue
            least = Requirement(requirement.least, is_open=True)  # the least version, or what is compatible with it
            fact = fact_of(
                passage, name=name, value=Value("version", str(least)), attribute="requires", side="code",
                form="manifest", start=match.start(), end=match.end("version"),
            )  # fmt: skip
            if fact is not None:
                yield fact


MAX_FACTS = 2_000
"""Of one passage: more is data."""

_LINES = (
    "yaml yml toml ini cfg conf properties env dotenv editorconfig service dockerfile containerfile docker".split()  # noqa: SIM905
)
_SYNTAX = {
    **dict.fromkeys(_LINES, line_entries),
    **dict.fromkeys(("conf", "cfg"), directive_entries),
    **dict.fromkeys(("json", "jsonc", "webmanifest"), bracket_entries),
    **dict.fromkeys(("spec", "configspec"), specified_entries),
}
_NESTED = frozenset("yaml yml toml json jsonc".split())  # noqa: SIM905
"""Formats whose keys have a path."""
# Lists of other people's versions, and data that nobody sets.
_NO_CONFIGURATION = lazy_pattern(
    r"(?:^|/)(?:package-lock|npm-shrinkwrap|composer\.lock|poetry\.lock|cargo\.lock|pnpm-lock|yarn\.lock|uv\.lock)|"
    r"\.lock$|\.jsonl$|\.map$|(?:^|/)(?:locales?|i18n|lang|translations?|messages|fixtures?|testdata|snapshots?)/",
    re.IGNORECASE,
)


def is_configuration(format: str, path: str) -> bool:  # noqa: A002 - the word of the contract
    """Tell whether a file is configuration or a manifest, by its format (``yaml``, ``dockerfile``) or its name.

    Manifests that are programs (``setup.py``, ``Gemfile``) count too: requirements are read here, the rest as code.
    """
    return _is_read(path) and (_reader(format, path) is not None or bool(patterns_of(path)))


@lru_cache(maxsize=1024)
def _reader(format_: str, path: str) -> Callable[[str], Iterator[Entry]] | None:
    name = PurePosixPath(path).name.lower()
    if language_of(path) is not None:
        return None
    if name.startswith(("dockerfile", "containerfile", ".env.")) or name == ".env":
        return line_entries
    bare = re.sub(r"\.(?:example|sample|template|dist|default|defaults|tmpl|tpl)$", "", name)
    return _SYNTAX.get(PurePosixPath(bare).suffix.lstrip(".")) or _SYNTAX.get(format_.lower())


@lru_cache(maxsize=1024)
def _is_read(path: str) -> bool:
    return _NO_CONFIGURATION.search(path) is None


def settings_of_block(text: str, start: int, end: int, format_: str) -> Iterator[tuple[str, Entry]]:
    """Yield the settings of a block of YAML, TOML or JSON on a page, in order, each with its path: ``lamp.glow``.

    Other formats have none.

    Args:
        text: the text of the page, in which the entries have their places.
        start: the start of the block. Its first line counts as a whole.
    """
    first = text.rfind("\n", 0, start) + 1
    for entry in _SYNTAX[format_](text[first:end]) if format_ in _NESTED else ():
        place = replace(entry, start=first + entry.start, end=first + entry.end)
        yield ".".join((*entry.parents, entry.key)), place


def configuration_facts(passage: Passage) -> Iterator[Fact]:
    """Yield the settings of a passage of configuration and the requirements of a manifest, each in order.

    The side of a fact is ``configuration``; but it is ``code`` for requirements (form ``manifest``) and defaults in a
    schema. Values of passwords, tokens and keys are never read.
    """
    if not _is_read(passage.path):
        return
    yield from line_requirements(passage)
    read = _reader(passage.format, passage.path)
    if read is not None and not says_only_versions(passage.path):
        entries = islice(without_descriptions(read(passage.text)), MAX_FACTS)
        yield from islice((fact for entry in entries for fact in setting_facts(passage, entry)), MAX_FACTS)
