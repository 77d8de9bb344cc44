"""Decide which files a source takes, and give the reason for each one that it leaves out.

The user's globs have precedence: files that match ``exclude`` are left out without a reason, and files that ``include``
names explicitly (``src/build/**``, ``*.lock``) are taken even if a rule below would leave them out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from nornweave.core.files.paths import PathFilter
from nornweave.core.files.withheld import Withheld
from nornweave.core.types import Domain
from nornweave.read.chunking.languages import language_of
from nornweave.read.formats.reader import CONVERTED
from nornweave.read.front_matter import FORMATS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Text that belongs to code without being one of the 13 languages: other languages, manifests, infrastructure, CI.
CODE_SUFFIXES = _words("""
    .asm .bash .bat .bazel .bicep .bzl .cabal .cfg .clj .cljs .cmake .conf .csproj .cu .cuh .dart .edn .el .elm .erl
    .ex .exs .f .f90 .fish .fs .gradle .graphql .gql .groovy .hcl .hs .ini .j2 .jinja .jl .json .jsonc .json5 .lisp
    .lua .m .mk .ml .mli .nim .nix .pl .pm .properties .proto .ps1 .pxd .pyx .r .rego .rkt .scala .sh .sol .sql
    .svelte .tcl .tf .thrift .toml .v .vb .vue .xml .yaml .yml .zig .zsh
""")
CODE_NAMES = _words("""
    dockerfile containerfile makefile gnumakefile jenkinsfile procfile vagrantfile rakefile gemfile podfile brewfile
    justfile tiltfile earthfile pipfile cmakelists.txt go.mod go.work build workspace codeowners .gitlab-ci.yml
    .dockerignore .editorconfig
""")
DOCUMENTATION_NAMES = _words("""
    readme license licence copying notice changelog changes history news contributing authors contributors
    maintainers security support install todo
""")
# These hold data as often as configuration; a big one is data.
DATA_SUFFIXES = _words(".json .jsonc .json5 .yaml .yml .xml .sql .edn")
MAX_CONFIGURATION_BYTES = 256 * 1024

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj", ".bzr"})
# Installed or cached by tools; nobody writes there, whatever the domain.
TOOL_DIRECTORIES = _words("""
    __pycache__ node_modules bower_components site-packages .venv .tox .nox .eggs .mypy_cache .pytest_cache
    .ruff_cache .hypothesis .cache .gradle .terraform .next .nuxt .parcel-cache .ipynb_checkpoints .idea
""")
VENDORED_DIRECTORIES = _words("vendor third_party third-party thirdparty _vendor")
# Output of builds, unless the folder holds a package that is just called so (pypa/build, com.acme.build).
OUTPUT_DIRECTORIES = _words("build dist out target venv env coverage htmlcov")

# What decides over the other files of its folder: what is ignored, and whether a folder is output or a package.
DECIDING = _words(".gitignore __init__.py")

GENERATED_SUFFIXES = (
    *(".min.js", ".min.mjs", ".min.css", ".bundle.js", ".map", ".lock", "_pb2.py", "_pb2.pyi", "_pb2_grpc.py"),
    *(".pb.go", ".pb.cc", ".pb.h", ".g.dart", ".freezed.dart", ".designer.cs", ".generated.cs", "_generated.go"),
)
GENERATED_NAMES = _words("package-lock.json pnpm-lock.yaml npm-shrinkwrap.json go.sum packages.lock.json")

BINARY_SUFFIXES = _words("""
    .7z .a .aac .apk .avi .avif .bin .bmp .bz2 .class .dat .db .deb .dll .dmg .doc .docx .duckdb .dylib .eot .epub .exe
    .flac .gif .gz .heic .ico .iso .jar .jpeg .jpg .lib .lz4 .mkv .mov .mp3 .mp4 .mpeg .npy .npz .o .obj .odp .ods
    .odt .ogg .onnx .otf .parquet .pdf .pickle .pkl .png .ppt .pptx .pt .pth .pyc .pyd .pyo .rar .rpm .safetensors
    .so .sqlite .sqlite3 .tar .tgz .tif .tiff .ttf .wasm .wav .webm .webp .whl .woff .woff2 .xls .xlsx .xz .zip .zst
""")


class Rules:
    """The rules of one source."""

    def __init__(self, domain: Domain, paths: PathFilter, withheld: Withheld | None = None) -> None:
        """Store the rules; what is withheld, ``include`` does not bring back."""
        self._withheld = withheld
        self._domain = domain
        self._paths = paths
        self._named = frozenset(part for pattern in paths.include for part in pattern.split("/"))

    def is_unwanted(self, path: str) -> bool:
        """Say whether the user's own ``include`` and ``exclude`` leave a file out."""
        return not self._paths.matches(path)

    def prunes(self, directory: str) -> bool:
        """Say whether ``exclude`` leaves out everything below a directory."""
        return self._paths.prunes(directory)

    def skip_directory(self, path: str, is_file: Callable[[str], bool]) -> str | None:
        """Return why a directory below the root is left out, or ``None``.

        Args:
            path: of the directory, relative to the root.
            is_file: tells whether the source has a file at a path.
        """
        *above, name = path.split("/")
        if name in VERSION_CONTROL:
            return f"{name}: version control's own files"
        if self._withheld and (withheld := self._withheld.reason(path)):
            return withheld
        kind = self._kind_of_directory(name)
        if kind is None or name in self._named:
            return None
        if name in OUTPUT_DIRECTORIES and ("src" in above or is_file(f"{path}/__init__.py")):
            return None
        return f"{name}: {kind}; name it in include to ingest it"

    def _kind_of_directory(self, name: str) -> str | None:
        if name in TOOL_DIRECTORIES:
            return "installed or cached by a tool"
        if self._domain is not Domain.CODE:
            return None
        if name in VENDORED_DIRECTORIES:
            return "vendored code"
        return "build output" if name in OUTPUT_DIRECTORIES else None

    def skip_file(self, path: str, size: int) -> str | None:
        """Return why a file is left out that the user did not exclude, or ``None``."""
        name = path.rpartition("/")[2]
        lowered = name.lower()
        suffix = PurePosixPath(lowered).suffix
        if self._withheld and (withheld := self._withheld.reason(path)):
            return withheld
        if name in self._named:
            return None
        if self._domain is Domain.CODE and (mark := _generated_mark(lowered)) and f"*{mark}" not in self._named:
            return f"generated ({mark}); name it in include to ingest it"
        return None if f"*{suffix}" in self._named else self._skip_type(name, suffix, size)

    def _skip_type(self, name: str, suffix: str, size: int) -> str | None:
        if suffix in BINARY_SUFFIXES and suffix not in _SUFFIXES[self._domain]:
            return f"binary ({suffix})"
        if not self._paths.include and not _is_default(self._domain, name):
            return f"not a file type of {self._domain.value} ({suffix or name}); add it to include to ingest it"
        if self._domain is Domain.CODE and suffix in DATA_SUFFIXES and size > MAX_CONFIGURATION_BYTES:
            limit = f"over {MAX_CONFIGURATION_BYTES // 1024} KiB is data, not configuration"
            return f"{suffix} of {size} bytes: {limit}; add **/*{suffix} to include to ingest it"
        return None


def _generated_mark(name: str) -> str | None:
    if name in GENERATED_NAMES:
        return name
    return next((suffix for suffix in GENERATED_SUFFIXES if name.endswith(suffix)), None)


def _is_default(domain: Domain, name: str) -> bool:
    lowered = name.lower()
    suffix = PurePosixPath(lowered).suffix
    if suffix in _SUFFIXES[domain]:
        return True
    if domain is Domain.CODE:
        return language_of(name) is not None or _is_code_name(lowered, suffix)
    return not suffix and lowered in DOCUMENTATION_NAMES


def _is_code_name(name: str, suffix: str) -> bool:
    if name in CODE_NAMES:
        return True
    dependencies = name.startswith(("requirements", "constraints")) and suffix in {".txt", ".in"}
    return dependencies or name.startswith(("dockerfile.", "makefile."))


# What has a suffix of text; a name without one is text or anything else.
_TEXTS = frozenset(suffix for suffix in FORMATS if suffix)
# Of documentation the contract says that the format follows the file name, PDF included.
_SUFFIXES = {
    Domain.CODE: CODE_SUFFIXES,
    Domain.DOCUMENTATION: _TEXTS | frozenset(CONVERTED) | {".pdf"},
    Domain.CONVERSATIONS: _TEXTS,
    Domain.RESEARCH: _TEXTS | frozenset(CONVERTED) | {".pdf", ".json"},
}
