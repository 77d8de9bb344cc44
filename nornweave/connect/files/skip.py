"""Decide which files a source reads, and give a reason for each one that is left out.

A reason is a label that is counted, a colon and an explanation, and after a semicolon what to do. What git tracks is
wanted, whatever its folder is called. Elsewhere a folder is left out for what it holds and what lies beside it.

``exclude`` has precedence. ``only`` replaces the file types of the domain, ``include`` adds to them; a folder or a file
that one of them names (``vendor/**``, ``*.lock``) is taken even if a rule below would leave it out.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from nornweave.core.files.paths import PathFilter, Withheld, folders_above
from nornweave.core.types import Domain
from nornweave.read.front_matter import FORMATS
from nornweave.read.kinds import (
    BINARY_SUFFIXES,
    DATA_SUFFIXES,
    OF_TESTS,
    SUFFIXES,
    TEST_DATA,
    TESTS,
    UNKNOWN_BYTES,
    is_unknown,
    reads,
    suffix_of,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_CONFIGURATION_BYTES = 256 * 1024

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
# Installed or cached by tools; nobody writes there, whatever the domain.
TOOL_DIRECTORIES = _words("""
    __pycache__ node_modules bower_components site-packages .venv .tox .nox .eggs .mypy_cache .pytest_cache
    .ruff_cache .hypothesis .cache .gradle .terraform .next .nuxt .parcel-cache .ipynb_checkpoints .idea
""")
VENDORED_DIRECTORIES = _words("vendor third_party third-party thirdparty 3rd_party 3rd-party 3rdparty _vendor")
"""In small letters; a project may write them otherwise."""

# A folder of this name is written by a tool if one of these files lies beside it.
_WRITTEN_BY: Mapping[str, frozenset[str]] = {
    "target": _words("Cargo.toml pom.xml build.sbt"),
    "build": _words(
        "build.gradle build.gradle.kts settings.gradle settings.gradle.kts setup.py pyproject.toml pubspec.yaml"
    ),
    "dist": _words("package.json setup.py pyproject.toml"),
    "_build": _words("conf.py mix.exs dune-project rebar.config Makefile make.bat"),
    "site": _words("mkdocs.yml mkdocs.yaml"),
    "_site": _words("_config.yml .eleventy.js eleventy.config.js"),
    "_book": _words("book.json"),
    "book": _words("book.toml"),
    "public": _words("hugo.toml hugo.yaml config.toml gatsby-config.js"),
    "coverage": _words("package.json"),
    "htmlcov": _words("pyproject.toml setup.py setup.cfg tox.ini .coveragerc"),
}
# Only tools write files with these names, never beside a person's files.
_MARKS = _words("""
    .buildinfo objects.inv searchindex.js search_index.json element-list package-list allclasses-index.html doxygen.css
    crates.js lcov.info coverage-final.json coverage_html.js CMakeCache.txt pyvenv.cfg asset-manifest.json .doctrees
""")
_HASHED = re.compile(
    r"[-.](?:[0-9a-f]{8,32}|(?=\w*\d)(?=\w*[A-Z])[\w-]{8})\.(?:m?js|css)(?:\.map)?$|\.min\.(?:m?js|css)$"
)
# Files that come with foreign code.
_FOREIGN = re.compile(
    r"(?:licen[sc]e|copying|notice)(?:[.-].*)?|modules\.txt|package\.json|bower\.json|composer\.json|cargo\.toml|go\.mod"
    r"|setup\.py|pyproject\.toml|pom\.xml|build\.gradle|.*\.gemspec|.*\.podspec",
    re.IGNORECASE,
)
_BUNDLE = re.compile(r".+\.(?:app|appex|bundle|framework|kext|plugin|prefpane|saver|xctest|xpc)", re.IGNORECASE)
"""What macOS runs: programs with what they need. A signature in one shows that a tool built it."""
_OF_YARN = re.compile(r"\.yarn/(?:cache|plugins|releases|sdks|unplugged|versions)")
_LOOKED_INTO = 200
"""Folders that are looked into for what tells whose the code is."""

# Files that decide about others in their folder: whether they are ignored, build output or a package.
DECIDING = frozenset({".gitignore", "__init__.py"}).union(*_WRITTEN_BY.values())

_TRANSLATED = DATA_SUFFIXES | _words(".properties .toml .plist .resx .ini .strings .stringsdict")
LOCKS = _words(
    "package-lock.json pnpm-lock.yaml npm-shrinkwrap.json go.sum packages.lock.json pkg-info ideworkspacechecks.plist"
)
WRITTEN_SUFFIXES = (".lock", ".map", "_pb2.pyi", ".xcworkspacedata", ".xcsettings")
"""Written by tools that say so nowhere in the file."""

WITH_FOLDERS = frozenset({Domain.CODE, Domain.DOCUMENTATION})
"""Domains whose files lie in repositories; what was exported for the others, somebody has chosen."""
EXCLUDED = "excluded: exclude names it"
UNNAMED = "not named: only names others"
CHOSEN = frozenset({EXCLUDED, UNNAMED})
"""Reasons that the configuration of a source gives."""


class Names(NamedTuple):
    """The names of the files and folders directly in a folder."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()


NOTHING = Names()
Tree = Callable[[str], Names]
"""Says of a folder, by its relative path, what lies in it."""


def tree_of_paths(paths: Iterable[str]) -> Tree:
    """Return the folder tree of some files."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for path in paths:
        folder, _, name = path.rpartition("/")
        files[folder].add(name)
        while folder:
            folder, _, name = folder.rpartition("/")
            folders[folder].add(name)
    known = {each: Names(frozenset(files[each]), frozenset(folders[each])) for each in {*files, *folders}}
    return lambda folder: known.get(folder, NOTHING)


def tree_of_folder(root: str) -> Tree:
    """Return the tree of a folder on disk. Each folder is read once."""
    known: dict[str, Names] = {}

    def names(folder: str) -> Names:
        if folder not in known:
            files: set[str] = set()
            folders: set[str] = set()
            with suppress(OSError), os.scandir(os.path.join(root, folder)) as entries:  # noqa: PTH118
                for entry in entries:
                    (folders if entry.is_dir(follow_symlinks=False) else files).add(entry.name)
            known[folder] = Names(frozenset(files), frozenset(folders))
        return known[folder]

    return names


def _below(tree: Tree, folder: str) -> Iterator[tuple[str, Names]]:
    """Yield a folder and all folders inside it, each with its entries. The folders closest to the top come first."""
    waiting = [folder]
    for number, place in enumerate(waiting):
        if number >= _LOOKED_INTO:
            return
        names = tree(place)
        yield place, names
        waiting.extend(f"{place}/{name}" if place else name for name in sorted(names.folders))


_REGION = r"(?:cn|tw|hk|br|gb|us|mx|hans|hant|latn|cyrl)\b"  # in lower case no language of its own behind another
_LANGUAGE = re.compile(
    rf"(?P<before>.*[._-])?(?!(?<=[a-z]{{2}}[-_])(?<![a-z]{{3}}[-_]){_REGION})"
    rf"(?P<tag>[a-z]{{2,3}}(?:[-_](?:{_REGION}|r?[A-Za-z]{{2}}|[A-Z][a-z]{{3}}|\d{{3}})){{0,2}})"
)
# Behind a language anything may stand where many languages lie side by side: ``ca-valencia``, ``sr_Latin``.
_VARIETY = re.compile(r"(?P<before>.*\.)?(?P<tag>[a-z]{2,3}(?:[-_@][A-Za-z\d]{2,8})+)")
_I18N = _words("i18n l10n intl lang langs language languages locale locales messages translations")
"""Folders in which programs are texts in many languages; elsewhere they do something for each."""
_MANY_LANGUAGES = 5
"""Beside a file that names no language, before they are taken for languages."""


def _original(tree: Tree, path: str, suffix: str) -> str | None:
    """Return the path of the original of a translated file; ``None`` if the file is not a translation.

    The original is English or has no language in its path. The two paths differ only in the language, which is part of
    the file's name or of a folder's name.
    """
    parts = path.split("/")
    for at, part in enumerate(parts):
        is_file = at == len(parts) - 1
        ending = part[part.rindex(".") :] if "." in part and (is_file or part.endswith(".lproj")) else ""
        stem = part.removesuffix(ending)
        named = _LANGUAGE.fullmatch(stem) or _VARIETY.fullmatch(stem)
        if named is None or not (suffix in _TRANSLATED or _I18N.intersection(parts[:at])):
            continue
        before, folder = named["before"] or "", "/".join(parts[:at])
        beside = tree(folder).files if is_file else tree(folder).folders
        others = {
            each: other["tag"]
            for each in sorted(beside)
            if each.endswith(ending) and (other := _LANGUAGE.fullmatch(each.removesuffix(ending)))
            if (other["before"] or "") == before
        }
        if part not in others and len(others) < _MANY_LANGUAGES:
            continue
        english = sorted((each for each, tag in others.items() if re.match(r"en(?![a-z])", tag)), key=len)[:1]
        if not english and len(others) >= _MANY_LANGUAGES and _I18N.intersection(parts[:at]):  # called by countries
            english = [each for each, tag in others.items() if tag in {"gb", "us"}]
        plain = [f"{before[:-1]}{ending}"] if before and len(others) >= _MANY_LANGUAGES else []
        base = ["Base.lproj"] if ending == ".lproj" and "Base.lproj" in beside else []
        for each in [*base, *(english or plain)]:
            *above, name = twin = [*parts[:at], each, *parts[at + 1 :]]
            if each != part and name in tree("/".join(above)).files:
                return "/".join(twin)
        # Of a window the original is its drawing; English, where somebody wrote it, are words of their own.
        drawn = f"{name.removesuffix(suffix)}.xib" if base and not english else ""
        if drawn in tree("/".join([*parts[:at], *base, *parts[at + 1 : -1]])).files:
            return "/".join([*parts[:at], *base, *parts[at + 1 : -1], drawn])
    return None


def _foreign_file(tree: Tree, folder: str) -> str | None:
    """Return the licence or manifest which shows that a folder has code of another project; ``None`` without one."""
    return next(
        (name for _, names in _below(tree, folder) for name in sorted(names.files) if _FOREIGN.fullmatch(name)), None
    )


def _written_by(tree: Tree, folder: str) -> str | None:
    """Return the name of a file, in or beside a folder, which shows that a tool wrote the folder; ``None`` if none."""
    above, _, name = folder.rpartition("/")
    names = tree(folder)
    if marks := names.files & _MARKS:
        return min(marks)
    if "__init__.py" in names.files or "src" in above.split("/"):
        return None
    beside = tree(above).files & _WRITTEN_BY.get(name, frozenset())
    if beside:
        return min(beside)
    if name in {"build", "out", "dist", "public", "static", "assets"}:
        hashed = (each for _, inner in _below(tree, folder) for each in sorted(inner.files) if _HASHED.search(each))
        return next(hashed, None)
    return None


_PAGES = frozenset(suffix for suffix, form in FORMATS.items() if form == "html")
MARKUP = tuple(suffix for suffix, form in FORMATS.items() if form not in {"html", "text"})


def _is_site_of(tree: Tree, folder: str) -> str | None:
    """Return the folder from whose sources a folder of HTML pages was built; ``None`` if no such folder is found."""
    above = folder.rpartition("/")[0]
    if "index.html" not in tree(folder).files or "index.html" in tree(above).files:
        return None
    pages = _pages(tree, folder, tuple(_PAGES))
    for place, _ in _below(tree, above.rpartition("/")[0]):
        if place != folder and not place.startswith(f"{folder}/"):
            twins = len(pages & _pages(tree, place, MARKUP))
            if twins > 1 and 2 * twins >= len(pages):
                return place
    return None


def _pages(tree: Tree, folder: str, suffixes: Sequence[str]) -> set[str]:
    """Return the page addresses of a folder, without suffixes and ``index`` names."""
    found = set()
    for place, names in _below(tree, folder):
        for name in names.files:
            stem, dot, suffix = name.rpartition(".")
            if f"{dot}{suffix}" in suffixes:
                inner = f"{place}/{stem}".removeprefix(folder).strip("/")
                found.add(re.sub(r"(?:^|/)(?:index|readme)$", "", inner, flags=re.IGNORECASE))
    return found


class Rules:
    """The rules of one source for leaving files out."""

    def __init__(
        self,
        domain: Domain,
        tree: Tree,
        *,
        types: Sequence[str] = (),
        include: Sequence[str] = (),
        only: Sequence[str] = (),
        exclude: Sequence[str] = (),
        withheld: Withheld | None = None,
        is_committed: bool = False,
    ) -> None:
        """Store the rules.

        Args:
            types: globs that replace the domain's file types.
            withheld: files that stay left out even if ``include`` names them.
            is_committed: whether all files come from a commit. Otherwise ``tracked`` has the paths that git tracks.
        """
        self._domain = domain
        self._tree = tree
        self._types, self._included, self._only = PathFilter(types), PathFilter(include), PathFilter(only)
        self._excluded = PathFilter(exclude=exclude)
        self._withheld = withheld
        self._is_committed = is_committed
        self.tracked: set[str] = set()
        self._named = frozenset(part for pattern in (*include, *only) for part in pattern.split("/"))
        self._reasons: dict[str, tuple[str, bool] | None] = {}

    def prunes(self, directory: str) -> bool:
        """Tell whether ``exclude`` leaves out everything below a directory."""
        return self._excluded.prunes(directory)

    def skip_directory(self, path: str) -> str | None:
        """Return why a directory is not entered; ``None`` if it is entered.

        The reason is ``""`` if the directory is left out without a report.
        """
        name = path.rpartition("/")[2]
        if name in VERSION_CONTROL:
            return ""
        if self.prunes(path):
            return EXCLUDED
        if self._withheld and (withheld := self._withheld.reason(path)):
            return withheld
        if name in TOOL_DIRECTORIES and name not in self._named:
            return f"{name}: installed or cached by a tool; name it in include to read it"
        return None

    def skip_file(self, path: str, size: int, *, is_program: bool = False) -> str | None:
        """Return why a file is left out; ``None`` if it is read.

        Args:
            is_program: whether the file has permission to be executed.
        """
        name = path.rpartition("/")[2]
        lowered = name.lower()
        suffix = suffix_of(name)
        if not self._excluded.matches(path):
            return EXCLUDED
        is_added = bool(self._included.include) and self._included.matches(path)
        if not (is_added or self._only.matches(path)):
            return UNNAMED
        if self._withheld and (withheld := self._withheld.reason(path)):
            return withheld
        if name in self._named:
            return None
        is_asked_for = is_added or bool(self._only.include)
        if f"*{suffix}" not in self._named:
            if lowered in LOCKS or lowered.endswith(WRITTEN_SUFFIXES):
                label = name if lowered in LOCKS else suffix or name
                return f"{label}: written by a tool; name it in include to read it"
            if suffix in BINARY_SUFFIXES and suffix not in SUFFIXES[self._domain]:
                return f"binary: {suffix}"
            is_read = (
                self._types.matches(path) if self._types.include else reads(self._domain, path, is_program=is_program)
            )
            # The content of such a folder decides.
            is_open = self._domain is Domain.CODE and size <= UNKNOWN_BYTES and is_unknown(path)
            if not (is_asked_for or is_read or (is_open and not self._types.include)):
                example = f"**/*{suffix}" if suffix else f"**/{name}"
                said = f"not a file type of {self._domain.value}"
                return f'{suffix or name}: {said}; add "{example}" to include to read it'
        if reason := self.skip_folder(path, suffix):
            return reason
        is_data = self._domain is Domain.CODE and suffix in DATA_SUFFIXES and size > MAX_CONFIGURATION_BYTES
        if is_data and not is_asked_for:
            limit = f"over {MAX_CONFIGURATION_BYTES // 1024} KiB is data, not configuration"
            return f'large {suffix}: {size:,} bytes, {limit}; add "**/*{suffix}" to include to read it'
        return None

    def skip_folder(self, path: str, suffix: str) -> str | None:
        """Return why a file is left out because of its place or its language; ``None`` if it is read.

        Reasons are a folder above the file, and an original of which the file is a translation.
        """
        if self._domain not in WITH_FOLDERS:
            return None
        for folder in reversed([*folders_above(path)]):  # the outermost first
            name = folder.rpartition("/")[2]
            if not folder or name in self._named:
                continue
            if folder not in self._reasons:
                self._reasons[folder] = self._reason_of(folder, name)
            if reason := self._reasons[folder]:
                text, is_of_others = reason
                # What git has of a project's own is wanted; a page that a tool wrote stands there a second time.
                is_second = self._domain is Domain.DOCUMENTATION and suffix in _PAGES
                if is_of_others or is_second or not (self._is_committed or path in self.tracked):
                    return text
        if self._domain is Domain.CODE and (original := _original(self._tree, path, suffix)):
            return f"translation: of {original}; name it in include to read it"
        if self._domain is Domain.DOCUMENTATION:
            folders = [each.lower() for each in path.split("/")[:-1] if each not in self._named]
            data = next((each for each in folders if each in TEST_DATA), None)
            if data is None and suffix not in MARKUP:
                data = next((each for each in folders if each in TESTS), None)
            if data:
                return f"test data: below {data}; name it in include to read it"
            if "_drafts" in folders:
                return "draft: below _drafts; name it in include to read it"
        return None

    def _reason_of(self, folder: str, name: str) -> tuple[str, bool] | None:
        """Return why the content of a folder is left out; ``None`` if it is read.

        The second value tells whether the content is code of another project.
        """
        if name.lower() in VENDORED_DIRECTORIES and (file := _foreign_file(self._tree, folder)):
            return f"vendored: below {folder}, {file} came with it; name it in include to read it", True
        if name.endswith((".egg-info", ".dist-info")) or _OF_YARN.fullmatch("/".join(folder.split("/")[-2:])):
            return f"packaging: below {folder}, written by a tool; name it in include to read it", True
        if _BUNDLE.fullmatch(name):
            inside = {each for _, names in _below(self._tree, folder) for each in (*names.files, *names.folders)}
            if "_CodeSignature" in inside:
                return f"signed bundle: {folder} was built by a tool; name it in include to read it", True
            if "Info.plist" in inside and any(map(OF_TESTS.fullmatch, folder.split("/"))):
                return f"test data: below {folder}, a bundle of a test; name it in include to read it", True
        if file := _written_by(self._tree, folder):
            return f"build output: below {folder}, as {file} shows; name it in include to read it", False
        if self._domain is Domain.DOCUMENTATION and (source := _is_site_of(self._tree, folder)) is not None:
            return (
                f"built site: below {folder}, made of {source or 'the folder above'}; name it in include to read it",
                False,
            )
        return None
