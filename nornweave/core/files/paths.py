"""Paths of foreign files: keep them inside a source, filter them by globs, open regular files only.

No source may read NornWeave's own files, or files whose name says that they hold secrets.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

from nornweave.core.errors import ConfigError, DocumentError
from nornweave.core.text.decode import MAX_BYTES, check_size

MAX_PATH_CHARACTERS = 1_024
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DRIVE = re.compile(r"[A-Za-z]:")

# Folders in which programs keep credentials, and nothing that a team would look for.
_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store"})
_NAMES = frozenset(
    {".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", ".npmrc", ".pypirc", ".dockercfg"}
    | {".vault-token", ".s3cfg", ".boto", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}
)
_ENDINGS = frozenset(
    {"env", "pem", "key", "p12", "pfx", "jks", "keystore", "kdbx", "ppk", "keytab", "tfstate", "p8", "pk8"}
)
# ``.env.example`` says which variables there are, not what they hold.
_TEMPLATES = frozenset({"example", "sample", "template", "dist", "default", "defaults", "schema"})
OWN, SECRET = "NornWeave's own; no source reads it", "its name is that of a secret; no source reads it"

_OUT = "below the folder of the configuration none leads out of it: write as 'path' where it leads"


def unsafe_path(path: str) -> str | None:
    """Return why a path cannot name a document inside a source; ``None`` if it can.

    Good paths are relative, with ``/`` between non-empty components other than ``.`` and ``..``, and valid text.
    """
    if not path or len(path) > MAX_PATH_CHARACTERS:
        return f"the path has {len(path)} characters; expected 1 to {MAX_PATH_CHARACTERS}"
    if not is_text(path):
        return f"the path {path!r} is not valid Unicode text"
    if _CONTROL.search(path):
        return f"the path {path!r} holds a control character"
    if path.startswith("/") or _DRIVE.match(path):
        return f"the path {path!r} is absolute; expected one relative to the source"
    if "\\" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
        return f"the path {path!r} holds an empty component, '.', '..' or a backslash; expected names with '/' between"
    return None


def is_text(name: str) -> bool:
    """Tell whether a file name is valid Unicode. In an invalid name, undecodable bytes are lone surrogates."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def printable(name: str) -> str:
    """Return a name with undecodable bytes escaped."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


FOLDS = sys.platform == "darwin"
"""Whether file systems usually open other spellings of a name as well: in other case, with letters decomposed."""


def as_compared(path: str) -> str:
    """Return a resolved path in a form for comparison. Two paths that may be the same file get equal forms."""
    return unicodedata.normalize("NFC", path).casefold() if FOLDS else path


def is_inside(path: str, root: str) -> bool:
    """Tell whether a resolved path is ``root`` or below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


@dataclass(frozen=True, slots=True)
class Within:
    """Some paths below a folder, with everything below these paths. The empty path is the folder itself."""

    paths: frozenset[str]

    def holds(self, path: str) -> bool:
        """Tell whether a path is one of ``paths`` or below one of them."""
        return path in self.paths or not self.paths.isdisjoint(folders_above(path))


def folders_above(path: str) -> Iterator[str]:
    """Yield the parent folders of a relative path, from the nearest to the root (the empty path)."""
    while path:
        path = path.rpartition("/")[0]
        yield path


class PathFilter:
    """The include and exclude globs of a source.

    Globs are ``.gitignore`` patterns: ``**`` is any number of whole components, ``*`` stays inside one, a pattern
    without a slash matches at any depth, and a pattern that names a directory matches everything below it. So
    ``src/**`` never matches ``src_utils/a.py``, and ``**/*.py`` also matches ``setup.py``. A later ``!pattern`` undoes
    the matches of earlier patterns.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        """Compile the globs.

        Args:
            include: globs of which a path must match one. If there are none, every path is included.
            exclude: globs of which a path must match none.

        Raises:
            ConfigError: a glob is empty, a comment or broken.
        """
        self.include = tuple(include)
        self.exclude = tuple(exclude)
        self._included = _compile("include", self.include)
        self._excluded = _compile("exclude", self.exclude)
        self._can_prune = not any(pattern.startswith("!") for pattern in self.exclude)

    def matches(self, path: str) -> bool:
        """Tell whether the globs include a file, by its path relative to the root."""
        if self.include and not self._included.match_file(path):
            return False
        return not (self.exclude and self._excluded.match_file(path))

    def prunes(self, directory: str) -> bool:
        """Tell whether certainly no path below a directory can match, so that it need not be entered."""
        return bool(self.exclude) and self._can_prune and self._excluded.match_file(directory + "/")


def check_globs(**globs: Sequence[str]) -> None:
    """Check the globs of some configuration keys.

    Raises:
        ConfigError: a glob is empty, a comment or broken. The message names its key.
    """
    for key, patterns in globs.items():
        _compile(key, tuple(patterns))


@lru_cache(maxsize=256)
def _included_by(include: tuple[str, ...]) -> PathFilter:
    return PathFilter(include)


def asks_for(include: Sequence[str], path: str) -> bool:
    """Tell whether a path matches one of the globs; ``False`` if there are none."""
    return bool(include) and _included_by(tuple(include)).matches(path)


def _compile(key: str, patterns: tuple[str, ...]) -> GitIgnoreSpec:
    for pattern in patterns:
        if not _is_valid(pattern):
            raise ConfigError(f"{key}: {pattern!r} is not a glob; expected one such as 'src/**' or '**/*.py'")
    return GitIgnoreSpec.from_lines([pattern.removeprefix("./") for pattern in patterns])


@lru_cache(maxsize=1_024)
def _is_valid(pattern: str) -> bool:
    try:
        (compiled,) = GitIgnoreSpec.from_lines([pattern.removeprefix("./")]).patterns or (None,)
    except (GitIgnorePatternError, ValueError, re.error):
        return False
    return compiled is not None and compiled.include is not None


def read_regular(path: str | Path, max_bytes: int = MAX_BYTES, *, follows: bool = True) -> bytes:
    """Read a regular file of at most ``max_bytes``. ``follows`` tells whether the path may be a link.

    Raises:
        DocumentError: the path is not a regular file, or the file is larger than ``max_bytes``.
        OSError: the file cannot be read.
    """
    with open_regular(path, follows=follows) as file:
        check_size(os.fstat(file.fileno()).st_size, max_bytes)
        raw = file.read(max_bytes + 1)
    check_size(len(raw), max_bytes)
    return raw


def open_regular(path: str | Path, *, follows: bool = True) -> BinaryIO:
    """Open a regular file for reading. Pipes and devices are refused without blocking.

    Args:
        follows: whether the path may be a link. For a resolved path use ``False``, because a link there is an attack.

    Raises:
        DocumentError: it is not a regular file.
        OSError: it cannot be opened.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder by now")
        raise DocumentError("it is not a regular file; exclude it")
    return os.fdopen(descriptor, "rb")


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """The files that NornWeave writes and its configuration.

    Attributes:
        data_dir: the data folder of the workspace, in which remote sources also store what they have read.
        files: the configuration, and the files with tokens or keys that it names.
        folder: the folder of the configuration. A link below it must not lead a source to a place outside it.
    """

    data_dir: Path
    files: tuple[Path, ...] = ()
    folder: Path | None = None

    @property
    def resolved(self) -> tuple[str, ...]:
        """The resolved paths of these files and of ``data_dir``, in the form of ``as_compared``."""
        return tuple(map(_resolved, (self.data_dir, *self.files)))

    def led_out(self, place: Path, target: str) -> str | None:
        """Return a message if ``place`` is below ``folder`` but a link leads it outside, else ``None``.

        Args:
            target: ``place`` with its links resolved.
        """
        if self.folder is None or not place.is_relative_to(self.folder):
            return None
        if is_inside(as_compared(target), _resolved(self.folder)):
            return None
        return f"is a link that leads to {target!r}; {_OUT}"


def _resolved(place: Path | str) -> str:
    return as_compared(os.path.realpath(place))


def is_secret(name: str) -> bool:
    """Tell whether the name of a file or folder says that it holds secrets."""
    lowered = name.lower()
    _, dot, ending = lowered.rpartition(".")
    is_environment = lowered.startswith(".env") and ending not in _TEMPLATES
    return is_environment or (bool(dot) and ending in _ENDINGS) or lowered in _NAMES | _FOLDERS


def check_place(key: str, place: Path, own: OwnFiles) -> None:
    """Refuse a file or folder that no source may read. Links are followed.

    Args:
        key: the configuration key that names the place, for messages.

    Raises:
        ConfigError: no source may read the place or a folder above it, or a link leads out of the configuration's
            folder.
    """
    target = os.path.realpath(place)
    *above, name = Path(target).parts
    if any(is_inside(as_compared(target), each) for each in own.resolved):
        raise ConfigError(f"{key}: {str(place)!r}: {OWN}")
    if is_secret(name) or not _FOLDERS.isdisjoint(map(str.lower, above)):
        raise ConfigError(f"{key}: {str(place)!r}: {SECRET}")
    if led := own.led_out(place, target):
        raise ConfigError(f"{key}: {str(place)!r} {led}")


class Withheld:
    """The files below a source's folder that the source may not read."""

    def __init__(self, root: Path | str, own: OwnFiles | None) -> None:
        resolved = _resolved(root)
        below = [Path(place) for place in (own.resolved if own else ()) if is_inside(place, f"{resolved}/")]
        self._own = {os.path.relpath(place, resolved) for place in below}
        # Locks and drafts, such as ``.nornweave.yaml.lock``.
        beside = (place.with_name(f".{place.name}.") for place in below)
        self._beside = tuple(os.path.relpath(place, resolved) for place in beside)

    def reason(self, path: str) -> str | None:
        """Return why the source may not read a path relative to its folder; ``None`` if it may."""
        compared = as_compared(path)
        if compared in self._own or compared.startswith(self._beside):
            return OWN
        return SECRET if is_secret(path.rpartition("/")[2]) else None
