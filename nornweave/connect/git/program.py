"""Run the ``git`` program with a deadline, without hooks, prompts, network or the user's configuration.

A repository's own configuration cannot be switched off as a whole. ``_CONFIGURATION`` overrides every key of it that
could start a program or change what the commands of this package print; the environment forbids every transport.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, TypeVar, cast

from nornweave.connect.git.watched import Bounds, OutOfTimeError, no_git, stream
from nornweave.core.errors import SourceUnavailableError, TransientDocumentError

Answer = TypeVar("Answer")

# A repository's own configuration may name programs to run. ``safe.directory`` is what git asks before it trusts any of
# it; a source's repository often belongs to another user, so all it could start is switched off here instead.
_CONFIGURATION = (
    "safe.directory=*",
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    f"core.attributesFile={os.devnull}",
    f"core.excludesFile={os.devnull}",
    "core.abbrev=auto",
    "core.commitGraph=true",
    "core.quotePath=false",
    "core.sshCommand=false",
    "core.gitProxy=false",
    "credential.helper=",
    "protocol.allow=never",
    "log.showSignature=false",  # would run gpg.program
    "log.showRoot=true",
    "log.mailmap=true",
    f"mailmap.file={os.devnull}",
    "i18n.logOutputEncoding=UTF-8",
    "blame.ignoreRevsFile=",
    f"diff.orderFile={os.devnull}",
    "diff.relative=false",
    "color.ui=false",
)
MIN_VERSION = (2, 32)
"""The oldest git that sources are read with: older ones do not know ``GIT_CONFIG_GLOBAL``."""
MAX_FIELD_BYTES = 1 << 16
"""The longest path, or other field, that is read from what git prints."""
_VERSION = re.compile(rb"git version (\d+)\.(\d+)")


class GitFailedError(Exception):
    """Git answered with an error; ``str(error)`` is its first line. It is not raised outside of ``connect``."""


def git_command(root: Path, *arguments: str, globs: bool = False) -> list[str]:
    """Return the command line that runs git in ``root``.

    Args:
        globs: treat paths in ``arguments`` as case-insensitive globs. Otherwise they are literal names.
    """
    paths = ("--glob-pathspecs", "--icase-pathspecs") if globs else ("--literal-pathspecs",)
    settings = [part for setting in _CONFIGURATION for part in ("-c", setting)]
    return ["git", "--no-pager", *paths, "-C", str(root), *settings, *arguments]


def git_environment() -> dict[str, str]:
    """Return git's environment: no ``GIT_*`` variables of the caller, no prompts, no locks."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return inherited | {
        # A partial clone fetches what it lacks through the transport that its configuration names: "ext" runs any
        # program, and "protocol.ext.allow" there goes before our "protocol.allow". This variable goes before both.
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",  # unknown to git before 2.45 and to some distributions' older ones
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def run_git(root: Path, *arguments: str, timeout_s: float) -> bytes:
    """Run git to its end and return its output. The errors are those of ``stream_git``."""
    return b"".join(stream_git(root, *arguments, timeout_s=timeout_s, must_finish=True))


def check_version(*, timeout_s: float) -> None:
    """Check that git is installed and not older than ``MIN_VERSION``.

    Raises:
        SourceUnavailableError: git is older, prints no version, or cannot be started.
    """
    try:
        said = run_git(Path("/"), "version", timeout_s=timeout_s)
    except GitFailedError as error:
        said = str(error).encode()
    match = _VERSION.match(said)
    if match is None or (int(match[1]), int(match[2])) < MIN_VERSION:
        found = said.decode("utf-8", "replace").strip()[:100]
        raise SourceUnavailableError(
            f"the git program says {found!r}; expected version {'.'.join(map(str, MIN_VERSION))} or newer: older ones "
            "cannot be kept from the user's configuration. Install a newer git."
        )


def stream_git(
    root: Path, *arguments: str, timeout_s: float, must_finish: bool = False, globs: bool = False
) -> Generator[bytes]:
    """Run git and yield its output as it comes. Closing the iterator ends the program.

    Args:
        globs: treat paths in ``arguments`` as case-insensitive globs. Otherwise they are literal names.
        timeout_s: the time limit for the whole output, in seconds.
        must_finish: raise an error if git fails or the time is over. Otherwise the output just ends, which suits
            optional facts.

    Raises:
        GitFailedError: git exits with an error.
        SourceUnavailableError: git is not installed or takes longer than ``timeout_s``.
    """
    name = f"git {arguments[0]} in {str(root)!r}"
    try:
        command = git_command(root.absolute(), *arguments, globs=globs)
        code, complaint = yield from stream(command, git_environment(), Bounds(timeout_s), name)
    except OutOfTimeError as error:
        if must_finish:
            slow = f"{name} took longer than {timeout_s:g} s; raise timeout_s or try again"
            raise SourceUnavailableError(slow) from error
        return
    if must_finish and code:
        raise GitFailedError(complaint.strip().partition("\n")[0] or f"git {arguments[0]} ended with {code}")


def split_fields(stream: Iterable[bytes]) -> Iterator[str]:
    """Yield the NUL-terminated fields of a stream. Undecodable bytes become lone surrogates.

    Raises:
        GitFailedError: a field is longer than ``MAX_FIELD_BYTES``.
    """
    rest = b""
    for chunk in stream:
        *whole, rest = (rest + chunk).split(b"\0")
        if max(map(len, whole), default=0) > MAX_FIELD_BYTES or len(rest) > MAX_FIELD_BYTES:
            raise GitFailedError(f"a name in the repository is longer than {MAX_FIELD_BYTES:,} bytes")
        for field in whole:
            yield field.decode("utf-8", "surrogateescape")


class Lasting:
    """A ``git`` process that answers requests until it is closed. Thread-safe."""

    def __init__(self, root: Path, *arguments: str, timeout_s: float) -> None:
        self._root = root
        self._arguments = arguments
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize[..., Lasting] | None = None

    def ask(self, wanted: str, talk: Callable[[IO[bytes], IO[bytes]], Answer]) -> Answer:
        """Call ``talk`` with the input and output of the git process. Return the result of ``talk``.

        Args:
            wanted: the name of the request in messages.
            talk: a function that raises ``OSError`` or ``ValueError`` if git does not answer as expected.

        Raises:
            TransientDocumentError: git ended or did not answer in time, twice. Its cause is a ``TimeoutError`` if the
                time was over. The next call starts git again.
            SourceUnavailableError: git is not installed.
        """
        with self._lock:
            with suppress(OSError, ValueError):
                return self._try(talk)
            try:  # a process may be ended from outside, as where memory is short
                return self._try(talk)
            except (OSError, ValueError) as error:
                raise TransientDocumentError(
                    f"git did not deliver {wanted} ({error}); the next sync tries again"
                ) from error

    def _try(self, talk: Callable[[IO[bytes], IO[bytes]], Answer]) -> Answer:
        """Return the result of ``talk``. If it fails, end git; raise ``TimeoutError`` if the time was over."""
        process, is_late = self._process or self._open(), threading.Event()

        def stop() -> None:
            is_late.set()
            process.kill()  # ends what waits for its output

        in_time = threading.Timer(self._timeout_s, stop)
        in_time.start()
        try:
            return talk(cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout))  # both are pipes
        except (OSError, ValueError) as error:
            self._close()
            if is_late.is_set():
                raise TimeoutError("no answer in time") from error
            raise
        finally:
            in_time.cancel()

    def close(self) -> None:
        """End the git process. A later ``ask`` starts a new one."""
        with self._lock:
            self._close()

    def _open(self) -> subprocess.Popen[bytes]:
        command = git_command(self._root, *self._arguments)
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        try:
            process = subprocess.Popen(command, env=git_environment(), stdin=pipe, stdout=pipe, stderr=nowhere)
        except OSError as error:
            raise no_git(error) from error
        self._process = process
        self._finalizer = weakref.finalize(self, _stop, process)
        return process

    def _close(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self._process, self._finalizer = None, None


class Blobs(Lasting):
    """Reads blobs of a repository by object id."""

    def __init__(self, root: Path, *, timeout_s: float) -> None:
        super().__init__(root, "cat-file", "--batch", timeout_s=timeout_s)

    def read(self, blob: str) -> bytes | None:
        """Return the blob with an object id; ``None`` if it is missing. The errors are those of ``ask``."""
        return self.ask(f"blob {blob}", lambda given, printed: _blob_from(blob, given, printed))


def _blob_from(blob: str, given: IO[bytes], printed: IO[bytes]) -> bytes | None:
    given.write(f"{blob}\n".encode("ascii"))
    given.flush()
    header = printed.readline().split()
    if not header:
        raise OSError("git ended")
    if header[1:] == [b"missing"]:
        return None
    _, kind, size = header
    content = printed.read(int(size) + 1)[:-1]
    if len(content) < int(size):
        raise OSError("git ended")
    if kind != b"blob":
        raise ValueError(f"it is a {kind.decode('ascii', 'replace')}")
    return content


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that only reads, and wait for it, so that no pipe and no zombie process remains."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
    process.wait()


def origin_of(root: Path, *, timeout_s: float) -> str:
    """Return the address that a repository was cloned from; empty if unknown."""
    try:
        said = run_git(root, "config", "--local", "--get", "remote.origin.url", timeout_s=timeout_s)
    except GitFailedError:
        return ""
    return said.decode("utf-8", "replace").removesuffix("\n")


_CONFIG_S = 20.0
# What is taken over from the git configuration of the user and the machine: how to reach a server. It may also name
# hooks, filters, templates, programs that watch files and other addresses ("url.….insteadOf"): none of them has a part
# in reading a repository, and some would lead elsewhere than "url" says.
# Proxies, certificates and logins, also those of one host ("http.https://example.org/.proxy").
_TAKEN = re.compile(r"(http|credential)\..+|core\.sshcommand|ssh\.variant", re.DOTALL)
# Keys that this program sets itself.
_NOT_TAKEN = re.compile(r"http\.(.+\.)?(followredirects|lowspeedlimit|lowspeedtime)", re.DOTALL)


def user_settings() -> tuple[tuple[str, str], ...]:
    """Return git's settings in git's order: those of the machine, then those of the user. Empty if git fails."""
    # No repository is looked for: what a folder says about itself does not count here.
    environment = {key: value for key, value in os.environ.items() if key not in {"GIT_DIR", "GIT_WORK_TREE"}}
    environment |= {"GIT_DIR": os.devnull, "LC_ALL": "C"}
    command = ["git", "config", "--null", "--includes", "--list"]
    try:
        done = subprocess.run(
            command, cwd="/", env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_CONFIG_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(_taken(done.stdout))


def excludes_file(root: Path) -> str:
    """Return the path of ``core.excludesFile``, or git's default path. The file may be missing."""
    environment = {key: value for key, value in os.environ.items() if key not in {"GIT_DIR", "GIT_WORK_TREE"}}
    command = ["git", "-C", str(root), "-c", "safe.directory=*", "config", "--null", "--type=path"]
    try:
        done = subprocess.run(
            [*command, "--get", "core.excludesFile"], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_CONFIG_S, check=False,
        )  # fmt: skip
        named = os.fsdecode(done.stdout).partition("\0")[0]
    except (OSError, subprocess.TimeoutExpired):
        named = ""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    file = os.path.join(root, named) if named else f"{home}/git/ignore"  # noqa: PTH118
    return file if os.path.isfile(file) else os.devnull  # noqa: PTH113


def _taken(listing: bytes) -> Iterator[tuple[str, str]]:
    for entry in listing.split(b"\0"):
        key, is_set, value = os.fsdecode(entry).partition("\n")
        if _TAKEN.fullmatch(key) and not _NOT_TAKEN.fullmatch(key):
            yield key, value if is_set else "true"
