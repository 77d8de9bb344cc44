"""Run the ``git`` program with a deadline, without hooks, prompts, network or the user's configuration.

A repository's own configuration cannot be switched off as a whole. ``_CONFIGURATION`` overrides every key of it that
could start a program or change what the commands of this package print; the environment forbids every transport.

It runs in a process group of its own, and is ended when it takes too much time or disk.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar, cast

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

LOOK_S = 0.3
"""How often the size of what it writes is looked at."""
END_S = 5.0
_READ_BYTES = 1 << 20
_COMPLAINT_BYTES = 1 << 14
MEGABYTE = 1_000_000


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


class TooLargeError(SourceUnavailableError):
    """The output of a fetch is larger than the limit."""


class OutOfTimeError(SourceUnavailableError):
    """A program exceeds its time limit."""


def no_git(error: OSError) -> SourceUnavailableError:
    """Return the error to raise if git cannot be started."""
    return SourceUnavailableError(
        f"the git program cannot be started: {error.strerror}; install git, or use a source of type files"
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits for running a program.

    Attributes:
        seconds: the time limit.
        folder: the folder to which the program writes; ``None`` if it writes no files.
        inherited: file descriptors that the program inherits. A lock on such a file is held until the last process with
            the descriptor ends.
    """

    seconds: float
    folder: Path | None = None
    max_bytes: int = 0
    max_answer_bytes: int = 16 << 20
    given: IO[bytes] | None = None
    inherited: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GitEnded:
    """The end of a program: exit code, output, and the last part of its error output."""

    code: int
    said: bytes
    complaint: str


def stream(
    command: Sequence[str], environment: Mapping[str, str], bounds: Bounds, name: str
) -> Generator[bytes, None, tuple[int, str]]:
    """Run a program and yield its output as it comes. Closing the iterator ends the program.

    The program has no terminal, so it cannot prompt. If this process is killed, the program ends when it next writes
    output. If it exceeds one of the ``bounds``, it is ended, and an error with its ``name`` is raised.

    Returns:
        The exit code, and the last part of the error output.

    Raises:
        OutOfTimeError: the program took too long.
        SourceUnavailableError: the program cannot be started. It is a ``TooLargeError`` if the program wrote too much.
    """
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd="/",
            stdin=bounds.given or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=bounds.inherited,
            start_new_session=True,
        )
    except OSError as error:
        raise no_git(error) from error
    try:
        complaint = yield from _watch(process, bounds, name)
        code = process.wait(END_S)
    except subprocess.TimeoutExpired as error:
        raise OutOfTimeError(f"{name}: git does not end; the next sync tries again") from error
    finally:
        _end(process)
    if bounds.folder:
        _check_size(bounds, name)
    return code, complaint.decode("utf-8", "replace").replace("\r", "\n")


def run_watched(command: Sequence[str], environment: Mapping[str, str], bounds: Bounds, name: str) -> GitEnded:
    """Run a program to its end and return how it ended, with all that it printed.

    Args:
        name: the program's name in errors.

    Raises:
        SourceUnavailableError: the program passes a bound, or prints more than an answer may have.
    """
    said = bytearray()
    with closing(stream(command, environment, bounds, name)) as running:
        while True:
            try:
                said += next(running)
            except StopIteration as ended:
                code, complaint = ended.value
                return GitEnded(code, bytes(said), complaint)
            if len(said) > bounds.max_answer_bytes:
                raise SourceUnavailableError(f"{name}: git prints more than {bounds.max_answer_bytes:,} bytes of names")


def size_of(folder: Path) -> int:
    """Return the total size of the files in a folder, in bytes. A file that vanishes meanwhile counts as 0."""
    total = 0
    for place, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                total += os.lstat(f"{place}/{file}").st_size
    return total


def _watch(process: subprocess.Popen[bytes], bounds: Bounds, name: str) -> Generator[bytes, None, bytes]:
    """Read both pipes to their end. Yield the output and return the last part of the error output."""
    deadline, look_at = time.monotonic() + bounds.seconds, 0.0
    pipes = {pipe.fileno(): pipe is process.stdout for pipe in (process.stdout, process.stderr) if pipe}
    complaint = b""
    poll = select.poll()
    for descriptor in pipes:
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
    while pipes:
        left_s = max(0.0, deadline - time.monotonic())
        for descriptor, _ in poll.poll(min(LOOK_S, left_s) * 1000):
            chunk = os.read(descriptor, _READ_BYTES)
            if not chunk:
                poll.unregister(descriptor)
                del pipes[descriptor]
            elif pipes[descriptor]:
                yield chunk
            else:
                complaint = (complaint + chunk)[-_COMPLAINT_BYTES:]
        now = time.monotonic()
        if now > deadline:
            raise OutOfTimeError(f"{name}: no end within {bounds.seconds:g} s; the next sync tries again")
        if bounds.folder and now > look_at:
            look_at = now + LOOK_S
            _check_size(bounds, name)
    return complaint


def _check_size(bounds: Bounds, name: str) -> None:
    if bounds.folder and size_of(bounds.folder) > bounds.max_bytes:
        raise TooLargeError(
            f"{name}: more than {bounds.max_bytes / MEGABYTE:,.0f} MB; raise 'max_megabytes', or narrow 'include' (a "
            "server that cannot leave files out sends all of them)"
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process group. First ask it to end, so that git removes unfinished files; then kill it."""
    if process.poll() is None:
        _signal(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
    _signal(process.pid, signal.SIGKILL)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
