"""Find out where a server leads to: git is told not to follow, since it would follow anywhere."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import httpx

from nornweave.connect.git.address import GitAddress, parse_address
from nornweave.core.errors import ConfigError, SourceUnavailableError

TIMEOUT_S = 20.0
_ASKED = "/info/refs?service=git-upload-pack"
_REASON = "the server leads to another address that cannot be followed; correct 'url'"


def redirected(address: GitAddress, login: tuple[str, str] | None, hosts: tuple[str, ...]) -> GitAddress:
    """Return the address that a server names instead of the one that it was asked for.

    Args:
        address: that redirects.
        login: user and password for its host.
        hosts: others that it may lead to, ``HOST`` or ``HOST:PORT``.

    Raises:
        SourceUnavailableError: it leads nowhere, to a host that is not allowed, or away from https.
    """
    asked = address.url.rstrip("/") + _ASKED
    try:
        with httpx.stream("GET", asked, auth=login, timeout=TIMEOUT_S, follow_redirects=False) as answer:
            target = urljoin(asked, answer.headers.get("location", ""))
        named = parse_address(target.removesuffix(_ASKED)) if target.endswith(_ASKED) else None
    except (httpx.HTTPError, httpx.InvalidURL, ConfigError, ValueError) as error:
        raise SourceUnavailableError(f"{address.shown}: {_REASON} ({type(error).__name__})") from error
    if named is None or named.protocol not in {"https", address.protocol}:
        raise SourceUnavailableError(f"{address.shown}: {_REASON}")
    if is_same_host(named, address):
        return _with_user(named, address.user)
    if not _is_among(named, hosts):
        raise SourceUnavailableError(
            f"{address.shown}: it leads to the host {named.host!r}, which is not allowed; correct 'url', or name that "
            "host in 'hosts'"
        )
    return _with_user(named, "")


def is_same_host(one: GitAddress, other: GitAddress) -> bool:
    """Tell whether two addresses are of one server, so that a password for one may be sent to the other."""
    return (one.host, one.port) == (other.host, other.port)


def _is_among(address: GitAddress, hosts: tuple[str, ...]) -> bool:
    name = f"{address.host}:{address.port}" if address.port else address.host
    return name in {host.lower() for host in hosts}


def _with_user(address: GitAddress, user: str) -> GitAddress:
    """Return an address with this user, whomever the server named."""
    parts = urlsplit(address.url)
    place = parts.netloc.rpartition("@")[2]
    return parse_address(parts._replace(netloc=f"{user}@{place}" if user else place).geturl())
