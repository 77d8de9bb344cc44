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
    """Return why a repository could not be read, what to do, and git's own words."""
    lines = _LINE.findall(_PROGRESS.sub("", said))
    words = "; ".join(dict.fromkeys(_CONTROL.sub(" ", line).strip() for line in lines))[:_SHOWN]
    for pattern, reason in _REASONS:
        if pattern.search(said):
            return f"{reason.format(login=_login(address, credentials_env))} (git: {words})"
    return f"git cannot read it, the next sync tries again (git: {words or 'it says nothing'})"


def is_damaged(said: str) -> bool:
    """Tell whether git complains about what is on this disk rather than about the other machine."""
    return _DAMAGED.search(said) is not None


def _login(address: GitAddress, credentials_env: str | None) -> str:
    if address.protocol == "file":
        return "give the user who runs this the right to read it"
    if address.protocol == "ssh":
        return "give the key of this user, or of its ssh agent, the right to read it"
    if credentials_env:
        return f"renew the token in {credentials_env}, or give it the right to read the repository"
    return "name the variable that holds a token in 'credentials_env', or set up git's credential helper"
