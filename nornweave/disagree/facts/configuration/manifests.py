"""Extract required versions of languages, runtimes and packages from manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import PurePosixPath

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact
from nornweave.disagree.facts.configuration.brackets import Entry
from nornweave.disagree.facts.passage import Passage, fact_of
from nornweave.disagree.facts.values import Value
from nornweave.disagree.facts.versions import PRODUCTS, Requirement, read_requirement

MAX_FOUND = 400
"""Facts that the lines of one manifest give."""


_SHORT = {
    # A version alone; a requirement in quotes, of one or two clauses; the name of a package.
    "{v}": r"(?P<version>v?\d[\w.]{0,30})",
    "{req}": r"[\"'](?P<version>[<>=~^ ]{0,4}\d[\w.]{0,30}(?:[\"'],[ ]?[\"'][<>=~ ]{1,4}\d[\w.]{0,30})?)[\"']",
    "{n}": r"(?P<name>[A-Za-z][\w.\-]{0,79})",
}


@dataclass(frozen=True, slots=True)
class LinePattern:
    """A pattern for the lines of files of these names.

    Attributes:
        files: names, lower case, blanks between them; ``*.x`` is any name that ends so, ``x*`` any that starts so.
        pattern: with ``{v}`` for a version, ``{req}`` for a quoted requirement, ``{n}`` for a name.
        name: of the thing; empty: the pattern has ``{n}``.
    """

    files: str
    pattern: str
    name: str = ""

    def compiled(self) -> re.Pattern[str]:
        """Return the pattern with its abbreviations written out."""
        pattern = self.pattern
        for short, long in _SHORT.items():
            pattern = pattern.replace(short, long)
        return lazy_pattern(pattern, re.MULTILINE)


_LINES = (
    LinePattern("setup.py setup.cfg", r"python_requires[ ]?=[ ]?[\"'](?P<version>[^\"'\n]{1,80})[\"']", "python"),
    LinePattern(
        "setup.py",
        r"sys\.version_info(?:\[:[23]\])?[ ]?<[ ]?\((?P<version>\d,[ ]?\d{1,2})[^)\n]{0,10}\)[^\n]{0,80}\n"
        r"(?:[^\n]{0,200}\n){0,8}?[ \t]+(?:sys\.exit|raise)\b",
        "python",
    ),
    LinePattern("go.mod", r"^go[ ]{v}", "go"),
    LinePattern(
        "go.mod",
        r"^(?:require)?[ \t]+(?:[\w.\-~]{1,80}/){1,8}?{n}(?:/v\d{1,3})?[ ]{v}(?![^\n]{0,40}// indirect)",
    ),
    LinePattern("gemfile", r"^[ ]{0,8}ruby[ (][ ]{0,4}{req}", "ruby"),
    LinePattern("gemfile", r"^[ ]{0,8}gem[ (][ ]{0,4}[\"']{n}[\"'],[ ]{0,8}{req}"),
    LinePattern("*.gemspec", r"required_ruby_version[ ]{0,4}=[^\n\"']{0,40}{req}", "ruby"),
    LinePattern("*.gemspec", r"add_(?:runtime_)?dependency[ (][ ]{0,4}[\"']{n}[\"'],[ ]{0,8}{req}"),
    LinePattern(
        "pom.xml",
        r"<(?:maven\.compiler\.(?:source|release|target)|java\.version|jdk\.version)>\s{0,9}{v}\s{0,9}</",
        "java",
    ),
    LinePattern(
        "*.gradle *.gradle.kts",
        r"\b(?:source|target)Compatibility[ ]?=?[ ]?[\"']?(?:JavaVersion\.VERSION_)?{v}",
        "java",
    ),
    LinePattern("*.gradle *.gradle.kts", r"\b(?:JavaLanguageVersion\.of|jvmToolchain)\({v}\)", "java"),
    LinePattern("*.csproj", r"<TargetFramework>\s{0,9}net(?:coreapp)?{v}", "dotnet"),
    LinePattern("cmakelists.txt", r"^[ \t]{0,20}cmake_minimum_required[ ]?\([ ]?VERSION[ ]{v}", "cmake"),
    LinePattern("package.swift", r"^//[ ]?swift-tools-version:[ ]?{v}", "swift"),
    LinePattern(
        "requirements.txt requirements.in base.txt base.in",
        r"^{n}(?:\[[\w,. -]{0,80}\])?[ ]?(?P<version>[<>=!~][<>=!~\w.*, ]{1,80})",
    ),
)
_PATTERNS = tuple((line.files.split(), line.compiled(), line) for line in _LINES)


@dataclass(frozen=True, slots=True)
class _Key:
    """Where a manifest says a version: in files of these names, below these keys (``a/b``), under this key.

    ``name`` is the thing; empty: the key names it.
    """

    files: str
    parents: str
    key: str
    name: str = ""


_TABLE = (
    _Key("package.json", r"engines", r"node|npm|yarn|pnpm|vscode|bun"),
    _Key("package.json", r"dependencies|peerDependencies", r"(?!@types/).+"),
    _Key("pyproject.toml", r"project", r"requires-python", "python"),
    _Key("pyproject.toml", r"tool/poetry/dependencies(?:/[\w.-]+)?", r"(?!extras|optional|markers).+"),
    _Key("setup.cfg", r"options", r"python[_-]requires", "python"),
    _Key("cargo.toml", r"(?:workspace/)?package", r"rust-version", "rust"),
    _Key("cargo.toml", r"(?:workspace/)?package", r"edition", "rust edition"),
    _Key("cargo.toml", r"(?:workspace/)?dependencies(?:/[\w-]+)?", r"(?!features|optional|path|default).+"),
    _Key("composer.json", r"require", r"(?!ext-).+"),
    _Key("pubspec.yaml", r"environment", r"sdk", "dart"),
    _Key("pubspec.yaml", r"environment", r"flutter"),
    _Key("chart.yaml", r"", r"kubeVersion", "kubernetes"),
    _Key("*.tf", r"terraform", r"required_version", "terraform"),
    _Key("*.tf", r"terraform/required_providers/[\w-]+", r"version"),
)
_KEYS = tuple((key.files.split(), lazy_pattern(key.parents), lazy_pattern(key.key), key) for key in _TABLE)
_LISTS = {"pyproject.toml": ("project", "dependencies"), "setup.cfg": ("options", "install_requires")}
_DEPENDENCY = lazy_pattern(
    r"[\"']?(?P<name>[A-Za-z][\w.\-]{0,79})(?:\[[\w,. -]{0,80}\])?[ ]?\(?(?P<version>[<>=!~][<>=!~\w.*, ]{1,80})"
)
_NOT_FOR_USERS = lazy_pattern(r"(?:^|[_.-])(?:dev|tests?|docs?|lint|ci|typing)(?:[_.-]|$)", re.IGNORECASE)
_ASIDE = lazy_pattern(
    r"/(?:docs?|tests?|examples?|demos?|samples?|benchmarks?|integration|scripts|tools)/", re.IGNORECASE
)
# Other keys of these are nobody's settings.
_ONLY_VERSIONS = """
    package.json composer.json cargo.toml go.mod gemfile setup.py pom.xml chart.yaml pubspec.yaml package.swift
    cmakelists.txt runtime.txt rust-toolchain rust-toolchain.toml .tool-versions .python-version .ruby-version
    .go-version .node-version .nvmrc *.gemspec *.gradle *.gradle.kts *.csproj requirements* .gitlab-ci.yml .travis.yml
    .gitpod.yml tox.ini codecov.yml .codecov.yml tsconfig* .eslintrc* .prettierrc* biome.json renovate.json
    dependabot.yml .markdownlint* lerna.json nx.json turbo.json bandit* .editorconfig mkdocs.yml .golangci* .goreleaser*
    .rubocop* appveyor.yml .pre-commit-config.yaml .readthedocs.yaml .readthedocs.yml azure-pipelines.yml
""".split()  # noqa: SIM905
_CI_FOLDER = lazy_pattern(r"(?:^|/)\.(?:github|circleci|gitlab|buildkite|devcontainer|vscode|idea)/")


def name_fits(name: str, wanted: list[str]) -> bool:
    """Tell whether a lower-case file name is one of these; ``*`` may stand at either end."""
    return any(
        name.endswith(one[1:]) if one[0] == "*" else name.startswith(one[:-1]) if one[-1] == "*" else name == one
        for one in wanted
    )


@lru_cache(maxsize=1024)
def patterns_of(path: str) -> tuple[tuple[re.Pattern[str], LinePattern], ...]:
    """Return the patterns for the lines of a file, by its name."""
    name = PurePosixPath(path).name.lower()
    return tuple((pattern, line) for files, pattern, line in _PATTERNS if name_fits(name, files))


@lru_cache(maxsize=1024)
def says_only_versions(path: str) -> bool:
    """Tell whether of a file only the versions matter: its other keys are nobody's settings."""
    return name_fits(PurePosixPath(path).name.lower(), _ONLY_VERSIONS) or _CI_FOLDER.search(path) is not None


def line_requirements(passage: Passage) -> Iterator[Fact]:
    """Yield what single lines of a manifest require; of other files nothing."""
    if not is_for_developers(passage.path):
        yield from islice(_line_requirements(passage), MAX_FOUND)


@lru_cache(maxsize=1024)
def is_for_developers(path: str) -> bool:
    """Tell whether a manifest is of tests, documentation or examples: what it names is not needed for use."""
    folder, _, name = path.rpartition("/")
    if _CI_FOLDER.search(path):
        return False
    return bool(_NOT_FOR_USERS.search(name) or _ASIDE.search(f"/{folder}/"))


def _line_requirements(passage: Passage) -> Iterator[Fact]:
    for pattern, line in patterns_of(passage.path):
        for match in pattern.finditer(passage.text):
            # ``(3, 8)`` of Python, ``VERSION_1_8`` of Gradle
            version = re.sub(r"(?<=\d)(?:,[ ]?|_)(?=\d)", ".", match["version"])
            name = line.name or match["name"]
            yield from _requires(passage, name, version, match.start(), match.end("version"))


def entry_requirements(passage: Passage, entry: Entry) -> Iterator[Fact]:
    """Yield what an entry of a manifest requires; of other entries nothing."""
    keys, in_list = _keys_of(passage.path)
    if not keys:
        return
    parents = "/".join(entry.parents)
    if entry.items is not None and in_list == (parents, entry.key):
        yield from _listed(passage, entry)
    if entry.items is not None:
        return
    for above, key, one in keys:
        if key.fullmatch(entry.key) and above.fullmatch(parents):
            named = entry.parents[-1] if entry.key == "version" else re.sub(r"[-_]version$", "", entry.key)
            yield from _requires(passage, one.name or named, entry.value, entry.start, entry.end)
            return


@lru_cache(maxsize=1024)
def _keys_of(
    path: str,
) -> tuple[tuple[tuple[re.Pattern[str], re.Pattern[str], _Key], ...], tuple[str, str] | None]:
    """Return what says a version in a file, and the list in which it names dependencies."""
    file = PurePosixPath(path).name.lower()
    if is_for_developers(path):
        return (), None
    return tuple((above, key, one) for files, above, key, one in _KEYS if name_fits(file, files)), _LISTS.get(file)


def _listed(passage: Passage, entry: Entry) -> Iterator[Fact]:
    at = entry.start
    for item in entry.items or ():
        start = passage.text.find(item, at, entry.end)
        if (match := _DEPENDENCY.match(item)) and start >= 0:
            at = start + len(item)
            yield from _requires(passage, match["name"], match["version"], start, at)


def _requires(passage: Passage, name: str, version: str, start: int, end: int) -> Iterator[Fact]:
    requirement = read_requirement(version)
    if requirement is None or requirement.least is None:
        return
    if not requirement.is_open:  # manifests name the least version, or what is compatible with it
        requirement = Requirement(requirement.least, is_open=True, below=requirement.below)
    name = PRODUCTS.get(name.lower(), re.sub(r"[^\w-]+", "-", name.lower()).strip("-"))
    fact = fact_of(
        passage, name=name, value=Value("version", str(requirement)), attribute="requires", side="code",
        form="manifest", start=start, end=end,
    )  # fmt: skip
    if fact is not None:
        yield fact
