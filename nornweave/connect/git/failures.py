"""Turn what git says about a failed transfer into what happened and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nornweave.connect.git.address import GitAddress

_SHOWN = 300
_PROGRESS = re.compile(r"^remote: +(Enumerating|Counting|Compressing|Total|Finding).*$", re.M)
_LINE = re.compile(r"^(?:fatal|error|remote|ssh|ERROR|git|kex_exchange_identification|.*Permission denied).*", re.M)
# Every control character: what a server says must not reach a terminal's controls.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
# The first pattern that git's words match names the reason. "{login}" is the advice of ``_login``.
_REASONS: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (r"could not resolve (host|hostname|proxy)|name or service not known", "the host is unknown; correct 'url' or "
         "the name server"),
        (r"dubious ownership", "the repository belongs to another user, whose configuration git will not follow; name "
         "the folder in 'path' instead, which reads it without"),
        (r"host key verification failed", "the host is not known to ssh, or has another key than it had; connect once "
         "by hand with ssh and compare its key"),
        (r"ssl certificate|certificate verif|unable to get local issuer|ssl peer|self.signed",
         "its certificate is not trusted; install the issuer's certificate (http.sslCAInfo in git's configuration)"),
        (r"returned error: 401|authentication failed|could not read (username|password)|terminal prompts disabled|"
         r"permission denied|http basic: access denied", "not allowed to read it (401): {login}"),
        (r"returned error: 403|access denied|not authorized|forbidden", "not allowed to read it (403): {login}"),
        (r"returned error: 40[04]|returned error: 410|repository not found|repository .*not found|"
         r"does not appear to be a git repository|not a git repository|no such file or directory|not valid: is this a",
         "there is no repository (404), or it may not be read by whom is asking: correct 'url'; {login}"),
        (r"returned error: 3\d\d|unable to update url base|redirect", "it leads to another address; correct 'url', or "
         "name the other host in 'hosts'"),
        (r"returned error: 429", "the server asks for fewer requests (429); the next sync tries again"),
        (r"returned error: 5\d\d", "the server answers with an error (5xx); the next sync tries again"),
        (r"connection refused|failed to connect|couldn't connect|network is unreachable|no route to host",
         "no connection; see whether the server runs and the network and the proxy let it be reached"),
        (r"timed out|too slow|less than \d+ bytes", "no answer, or too slow an answer, in time; the next sync tries "
         "again"),
        (r"no space left on device|disk quota exceeded", "no space is left on the disk of data_dir; make room"),
        (r"not our ref|couldn't find remote ref|unadvertised object|no such remote ref",
         "the server does not give out what 'ref' names; name a branch or a tag"),
        (r"transport '.*' not allowed", "it leads to a protocol that is not allowed; correct 'url'"),
        (r"early eof|rpc failed|unexpected disconnect|hung up|index-pack|unpack|pack is corrupted|bad pack|"
         r"protocol error|bad line length|invalid pkt|expected .*(response|packfile|section)|"
         r"transfer closed|empty reply|connection reset|"
         r"inflate|truncated|broken pipe|curl", "the transfer broke off; the next sync tries again"),
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
    """Return why a repository could not be read, what to do, and git's own words."""
    lines = _LINE.findall(_PROGRESS.sub("", said))
    words = "; ".join(dict.fromkeys(_CONTROL.sub(" ", line).strip() for line in lines))[:_SHOWN]
    for pattern, reason in _REASONS:
        if pattern.search(said):
            return f"{reason.format(login=_login(address, credentials_env))} (git: {words})"
    return f"git cannot read it: {words or 'it says nothing'}"


def is_damaged(said: str) -> bool:
    """Tell whether git complains about what is on this disk rather than about the other machine."""
    return _DAMAGED.search(said) is not None


def is_redirect(said: str) -> bool:
    """Tell whether the server named another address, which git was told not to follow."""
    return re.search(r"returned error: 30\d|unable to update url base", said) is not None


def _login(address: GitAddress, credentials_env: str | None) -> str:
    if address.protocol == "file":
        return "give the user who runs this the right to read it"
    if address.protocol == "ssh":
        return "give the key of this user, or of its ssh agent, the right to read it"
    if credentials_env:
        return f"renew the token in {credentials_env}, or give it the right to read the repository"
    return "name the variable that holds a token in 'credentials_env', or set up git's credential helper"
