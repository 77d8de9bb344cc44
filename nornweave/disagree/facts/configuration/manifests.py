"""Extract required versions of languages and runtimes from manifests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from pathlib import PurePosixPath

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact
from nornweave.disagree.facts.passage import Passage, fact_of
from nornweave.disagree.facts.values import Value
from nornweave.disagree.facts.versions import Requirement, read_requirement

MAX_FOUND = 20
"""Requirements that lines of one kind give."""

# A version alone; a requirement in quotes, of one or two clauses.
_V = r"(?P<version>v?\d[\w.]{0,30})"
_REQ = r"[\"'](?P<version>[<>=~^ ]{0,4}\d[\w.]{0,30}(?:[\"'],[ ]?[\"'][<>=~ ]{1,4}\d[\w.]{0,30})?)[\"']"
_QUOTED = r"[\"'](?P<version>[^\"'\n]{1,80})[\"']"
# Names of files, lower case (``*.x`` is any name that ends so), how they say a version, and of what.
_LINES = tuple(
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


@lru_cache(maxsize=1024)
def patterns_of(path: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the patterns for lines of files with this name, each with the subject of its requirement."""
    name = PurePosixPath(path).name.lower()
    return tuple((pattern, thing) for files, pattern, thing in _LINES if any(fnmatchcase(name, one) for one in files))


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
