"""Git over the network. Only this module uses it, for one address with one protocol.

Everything is decided here and nothing is left in the clone: what git is told comes through its environment, so that
addresses, users and secrets are in no command line and in no file. The clone's own configuration names no remote;
whoever reads it later cannot reach the network even by mistake.

What git says about a failed transfer is turned into what happened and what to do.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nornweave.connect.git.address import GitAddress
from nornweave.connect.git.program import Bounds, GitEnded, git_environment, run_watched, user_settings
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.network import public_addresses

_SHOWN = 300
_PROGRESS = re.compile(r"^remote: +(Enumerating|Counting|Compressing|Total|Finding).*$", re.M)
_LINE = re.compile(r"^(?:fatal|error|remote|ssh|ERROR|git|kex_exchange_identification|.*Permission denied).*", re.M)
# Every control character: what a server says must not reach a terminal's controls.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
# The first pattern that git's words match names what to do. "{login}" is the advice of ``_login``.
_REASONS: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (r"could not resolve (host|hostname|proxy)|name or service not known|connection refused|failed to connect|"
         r"couldn't connect|network is unreachable|no route to host",
         "no connection; correct 'url', or let the network, the name server and the proxy reach the server"),
        (r"host key verification failed", "the host is not known to ssh, or has another key than it had; connect once "
         "by hand with ssh and compare its key"),
        (r"ssl certificate|certificate verif|unable to get local issuer|ssl peer|self.signed",
         "its certificate is not trusted; install the issuer's certificate (http.sslCAInfo in git's configuration)"),
        (r"returned error: 40[13]|authentication failed|could not read (username|password)|terminal prompts disabled|"
         r"permission denied|access denied|not authorized|forbidden", "not allowed to read it: {login}"),
        (r"returned error: 40[04]|returned error: 410|repository not found|repository .*not found|"
         r"does not appear to be a git repository|not a git repository|no such file or directory|not valid: is this a",
         "there is no repository, or it may not be read by whom is asking: correct 'url'; {login}"),
        (r"returned error: 3\d\d|unable to update url base|redirect|transport '.*' not allowed",
         "it leads to another address, which is not followed; correct 'url'"),
        (r"no space left on device|disk quota exceeded", "no space is left on the disk of data_dir; make room"),
        (r"not our ref|couldn't find remote ref|unadvertised object|no such remote ref",
         "the server does not give out what 'ref' names; name a branch or a tag"),
    )
)  # fmt: skip
_DAMAGED = re.compile(
    r"bad object|object file .* is empty|loose object|is corrupt|index-?file|packfile .*(cannot|not)|bad tree|"
    r"unable to read (tree|[0-9a-f]{40})|could not read [0-9a-f]{40}|failed to (read|traverse)|missing (blob|tree)|"
    r"did not send all necessary objects|unresolved delta|not a git repository: '?\.|bad config|invalid sha1 pointer|"
    r"bad signature|unable to find [0-9a-f]{40}|cannot lock ref|unable to resolve reference|garbage at end of loose",
    re.IGNORECASE,
)


def reason_of(said: str, address: GitAddress, credentials_env: str | None) -> str:
    """Return why a repository could not be read, what to do, and the message ``said`` that git printed."""
    lines = _LINE.findall(_PROGRESS.sub("", said))
    words = "; ".join(dict.fromkeys(_CONTROL.sub(" ", line).strip() for line in lines))[:_SHOWN]
    for pattern, reason in _REASONS:
        if pattern.search(said):
            return f"{reason.format(login=_login(address, credentials_env))} (git: {words})"
    return f"git cannot read it, the next sync tries again (git: {words or 'it says nothing'})"


def is_damaged(said: str) -> bool:
    """Tell whether git's error is about the local disk and not about the other machine."""
    return _DAMAGED.search(said) is not None


def _login(address: GitAddress, credentials_env: str | None) -> str:
    if address.protocol == "file":
        return "give the user who runs this the right to read it"
    if address.protocol == "ssh":
        return "give the key of this user, or of its ssh agent, the right to read it"
    if credentials_env:
        return f"renew the token in {credentials_env}, or give it the right to read the repository"
    return "name the variable that holds a token in 'credentials_env', or set up git's credential helper"


REMOTE = "origin"
LIST_S = 120.0
FETCH_S = 1_800.0
"""The longest that one fetch may take; what came before it ended is kept where git can."""
STALL_S = 60
"""A transfer is given up when so long less than ``STALL_BYTES`` a second came."""
STALL_BYTES = 10  # servers that think send a sign of life every few seconds
_BATCH = 10_000
"""Blobs of one request: their ids fit into a request that servers take in one piece."""
_LOST_FILES = 20
"""Files of a request that the server may have lost itself; the others are fetched without them."""
_LOST = re.compile(r"not our ref ([0-9a-f]{40,64})")
_SSH_OPTIONS = (
    f"-o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax={STALL_S // 15} "
    "-o ForwardAgent=no -o ClearAllForwardings=yes -o PermitLocalCommand=no"
)
_SECRET, _USER = "NORNWEAVE_GIT_SECRET", "NORNWEAVE_GIT_USER"
_HELPER = f'!f() {{ test "$1" = get || exit 0; printf "username=%s\\npassword=%s\\n" "${_USER}" "${_SECRET}"; }}; f'
# Variables of the user that tell how to reach a server. All other GIT_* variables are dropped.
_INHERITED = (
    "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "GIT_SSL_NO_VERIFY", "GIT_SSH_VARIANT",
)  # fmt: skip
_SETTINGS = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.gitProxy", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.uriProtocols", ""),  # a server may say where a pack lies: on any host
    ("transfer.bundleURI", "false"),
    ("fetch.unpackLimit", "1"),
    ("submodule.recurse", "false"),
    ("protocol.version", "2"),
    ("pack.threads", "2"),
    # Refuse redirects and dumb servers' alternates: content from elsewhere would count as that of "url".
    ("http.followRedirects", "false"),
)


class DamagedCloneError(Exception):
    """Git cannot use the local clone; ``str(error)`` is the reason. It is not raised outside of ``connect.git``."""


@dataclass(frozen=True, slots=True)
class Network:
    """Network access to one repository.

    Attributes:
        credentials_env: the environment variable that holds a password or token.
        public_only: connect to public hosts only, without the logins of the user who runs this process.
    """

    address: GitAddress
    credentials_env: str | None = field(default=None, kw_only=True)
    public_only: bool = field(default=False, kw_only=True)

    def list_refs(self, *names: str) -> str:
        """Ask for the commits of refs in one request. Return the output of ``git ls-remote``.

        Args:
            names: full names, such as ``HEAD`` and ``refs/heads/main``.

        Raises:
            SourceUnavailableError: the request failed. The message says why and what to do.
        """
        ended = self._run(None, ("ls-remote", REMOTE, *names), Bounds(seconds=LIST_S))
        if ended.code:
            raise SourceUnavailableError(self._reason(ended))
        return ended.said.decode("utf-8", "replace")

    def fetch(self, repository: Path, refspecs: Sequence[str], bounds: Bounds) -> None:
        """Fetch the commits and folders of refs. Files are left out if the server supports that.

        Raises:
            DamagedCloneError: the local repository cannot be used.
            SourceUnavailableError: the request failed. The message says why and what to do. It is a ``TooLargeError``
                if the answer exceeds ``bounds``.
        """
        self._check(self._run_fetch(repository, (REMOTE, *refspecs), bounds), repository)

    def fetch_blobs(self, repository: Path, blobs: Iterable[str], bounds: Bounds) -> None:
        """Fetch files by object id in batches of ``_BATCH``. If a batch fails, the earlier batches are kept.

        Raises:
            DamagedCloneError: the local repository cannot be used.
            SourceUnavailableError: the request failed. The message says why and what to do. It is a ``TooLargeError``
                if the answer exceeds ``bounds``.
        """
        wanted = list(blobs)
        for start in range(0, len(wanted), _BATCH):
            batch = dict.fromkeys(wanted[start : start + _BATCH])
            for _ in range(_LOST_FILES):
                lost = self._fetch_batch(repository, batch, bounds)
                if lost is None:
                    break
                del batch[lost]

    def _fetch_batch(self, repository: Path, batch: Collection[str], bounds: Bounds) -> str | None:
        """Fetch files.

        If the server lacks one of them, fetch nothing and return its object id, else return ``None``.
        """
        with tempfile.TemporaryFile() as names:
            names.write("".join(f"{blob}\n" for blob in batch).encode("ascii"))
            names.seek(0)
            # What git itself does for a file that it lacks: the server is not told what is here already.
            settings = ("fetch.negotiationAlgorithm", "noop")
            ended = self._run_fetch(repository, ("--stdin", REMOTE), replace(bounds, given=names), settings)
        lost = _LOST.search(ended.complaint) if ended.code else None
        if lost is not None and lost[1] in batch and len(batch) > 1:
            return lost[1]
        self._check(ended, repository)
        return None

    def repack(self, repository: Path, bounds: Bounds) -> bool:
        """Put all fetched objects into one pack, without the network. Return whether it worked."""
        return self._run(repository, ("repack", "-a", "-d", "-q"), bounds, is_local=True).code == 0

    def _run_fetch(
        self, repository: Path, arguments: Sequence[str], bounds: Bounds, *settings: tuple[str, str]
    ) -> GitEnded:
        options = ("--no-tags", "--no-write-fetch-head", "--filter=blob:none", "--progress")
        return self._run(repository, ("fetch", *options, *arguments), bounds, settings)

    def _check(self, ended: GitEnded, repository: Path) -> None:
        if ended.code:
            if is_damaged(ended.complaint) or str(repository) in ended.complaint:
                raise DamagedCloneError(self._reason(ended))
            raise SourceUnavailableError(self._reason(ended))

    def _run(
        self,
        repository: Path | None,
        arguments: Sequence[str],
        bounds: Bounds,
        settings: Sequence[tuple[str, str]] = (),
        *,
        is_local: bool = False,
    ) -> GitEnded:
        place = ("--git-dir", str(repository)) if repository else ()
        environment = git_environment() | self._environment(settings, is_local=is_local)
        return run_watched(["git", "--no-pager", *place, *arguments], environment, bounds, str(self.address.shown))

    def _environment(self, settings: Iterable[tuple[str, str]], *, is_local: bool) -> dict[str, str]:
        """Return git's environment, which has the addresses and secrets; no secret if the call ``is_local``."""
        secret = None if is_local else self._secret()
        known = [] if self.public_only else list(user_settings())
        known = [(key, value) for key, value in known if secret is None or not key.startswith("credential.")]
        told = [*known, *_SETTINGS, *settings, *self._remote(), *(self._login() if secret else ())]
        inherited = () if self.public_only else _INHERITED
        environment = {name: os.environ[name] for name in inherited if name in os.environ}
        environment |= {"GIT_ALLOW_PROTOCOL": "" if is_local else self.address.protocol}
        environment |= {"GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never"}  # empty: nothing is asked, also no window
        if self.address.protocol == "ssh":
            environment["GIT_SSH_COMMAND"] = ssh_command(dict(known))
        if secret:
            environment |= {_SECRET: secret, _USER: self.address.user or _usual_user(self.address.host)}
        if self.public_only and not is_local:
            # Pin the checked addresses: the name may resolve differently a moment later.
            addresses = ",".join(f"[{each}]" if ":" in each else each for each in public_addresses(self.address.host))
            if ":" not in self.address.host:
                told.append(("http.curloptResolve", f"{self.address.host}:{self.address.port or 443}:{addresses}"))
            # Neither proxies nor a ``.netrc`` of the user.
            environment |= {"HOME": os.devnull, "NO_PROXY": "*", "no_proxy": "*"}
        for place, (key, value) in enumerate(told):
            environment |= {f"GIT_CONFIG_KEY_{place}": key, f"GIT_CONFIG_VALUE_{place}": value}
        return environment | {"GIT_CONFIG_COUNT": str(len(told))}

    def _remote(self) -> Iterator[tuple[str, str]]:
        yield "http.lowSpeedLimit", str(STALL_BYTES)
        yield "http.lowSpeedTime", str(STALL_S)
        # A promisor may lack files: without the two settings git would write them into the clone's configuration.
        yield f"remote.{REMOTE}.url", self.address.url
        yield f"remote.{REMOTE}.promisor", "true"
        yield f"remote.{REMOTE}.partialCloneFilter", "blob:none"
        yield f"remote.{REMOTE}.tagOpt", "--no-tags"

    def _login(self) -> Iterator[tuple[str, str]]:
        yield "credential.helper", ""  # the secret is not handed to a helper that would keep it
        yield f"credential.{self._origin}.helper", _HELPER

    @property
    def _origin(self) -> str:
        port = f":{self.address.port}" if self.address.port else ""
        host = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        return f"{self.address.protocol}://{host}{port}"

    def _secret(self) -> str | None:
        """Return the password from the variable ``credentials_env``.

        ``None`` if no variable is configured or if the repository has no http or https address.

        Raises:
            SourceUnavailableError: the variable is not set, or it has control characters.
        """
        if self.credentials_env is None or self.address.protocol not in {"https", "http"}:
            return None
        secret = os.environ.get(self.credentials_env, "").strip()
        if not secret:
            raise SourceUnavailableError(
                f"{self.address.shown}: the variable {self.credentials_env} of 'credentials_env' is not set where this "
                "runs; set it to a token that may read the repository"
            )
        if not secret.isprintable():
            raise SourceUnavailableError(
                f"{self.address.shown}: the variable {self.credentials_env} holds control characters; set it to a "
                "token (it is not shown here)"
            )
        return secret

    def _reason(self, ended: GitEnded) -> str:
        reason = reason_of(ended.complaint, self.address, self.credentials_env)
        secret = os.environ.get(self.credentials_env or "", "").strip()
        for hidden, shown in ((secret, "…"), (self.address.user and f"{self.address.user}@", "")):
            reason = reason.replace(hidden, shown) if hidden else reason
        return f"{self.address.shown}: {reason}"


def ssh_command(settings: Mapping[str, str]) -> str:
    """Return git's ssh command: the user's own or ``ssh``. It never prompts, and it has a time limit."""
    own = os.environ.get("GIT_SSH_COMMAND") or settings.get("core.sshcommand") or "ssh"
    return f"{own} {_SSH_OPTIONS}"


def _usual_user(host: str) -> str:
    """Return the user name to send with a token if the address names no user. Most servers ignore the name."""
    return "x-token-auth" if host == "bitbucket.org" else "x-access-token"


COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PEELED = "^{}"
# What git allows in names of refs, and nothing that a refspec or a shell would read otherwise.
_NAME = re.compile(r"(?![-/.])(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.|\.$|/$))[^\x00-\x20\x7f~^:?*\[\\]+")


def find_ref(network: Network, ref: str) -> tuple[str, str]:
    """Ask a server for a ref. Return its full name, such as ``refs/heads/main``, and its commit.

    Raises:
        SourceUnavailableError: the repository cannot be read, or it has no such ref. The message says which.
    """
    if COMMIT_ID.fullmatch(ref):
        network.list_refs("HEAD")
        return ref, ref
    # A signed or annotated tag is an object of its own; with "^{}" comes the commit that it is about.
    listing = network.list_refs(*(each for name in _names(ref) for each in (name, f"{name}{_PEELED}")))
    if found := choose(ref, listing):
        return found
    advice = "push something, or correct 'ref'; a commit needs all of its digits"
    raise SourceUnavailableError(f"{network.address.shown}: it has no branch or tag {ref!r} (any more); {advice}")


def is_name(ref: str) -> bool:
    """Tell whether git accepts a text as the name of a branch or tag."""
    return _NAME.fullmatch(ref) is not None


def choose(ref: str, listing: str) -> tuple[str, str] | None:
    """Return the full name and the commit of a ref in the output of ``git ls-remote``; ``None`` if it is not there."""
    pairs = (line.partition("\t") for line in listing.splitlines())
    commits = {name: commit for commit, _, name in pairs}
    name = next((each for each in _names(ref) if each in commits), None)
    return (name, commits.get(f"{name}{_PEELED}", commits[name])) if name else None


def _names(ref: str) -> tuple[str, ...]:
    """Return the possible full names of a ref; a branch comes before a tag."""
    return (ref,) if ref == "HEAD" or ref.startswith("refs/") else (f"refs/heads/{ref}", f"refs/tags/{ref}")
