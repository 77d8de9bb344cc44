"""HTTP to other machines: proxies of the environment, public addresses, compressed answers.

For a source that came over HTTP only hosts are asked that everybody on the internet reaches. Not this machine, its
networks or the cloud that it runs in: what listens there trusts whoever reaches it.
"""

from __future__ import annotations

import ipaddress
import socket
import zlib
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from nornweave.core.errors import SourceUnavailableError

PIECE_BYTES = 65_536
ACCEPTED = {"Accept-Encoding": "gzip"}
"""What is asked for; ``decoded`` reads nothing else."""


def decoded(pieces: Iterable[bytes], coding: str) -> Iterator[bytes]:
    """Decompress an answer in pieces of at most ``PIECE_BYTES``.

    A few kilobytes that were compressed twice can become gigabytes before anybody can check their size.

    Args:
        coding: the header ``Content-Encoding``.

    Raises:
        ValueError: the answer is compressed in another way, or damaged.
    """
    if coding.strip().lower() in {"", "identity"}:
        yield from pieces
        return
    if coding.strip().lower() not in {"gzip", "x-gzip", "deflate"}:
        raise ValueError(f"an answer that is compressed as {coding[:60]!r}; expected gzip")
    inflating = zlib.decompressobj(zlib.MAX_WBITS | 32)  # of gzip or of zlib
    try:
        for piece in pieces:
            left = piece
            while (content := inflating.decompress(left, PIECE_BYTES)) or inflating.unconsumed_tail:
                yield content
                left = inflating.unconsumed_tail
    except zlib.error as error:
        raise ValueError(f"an answer whose compression is damaged ({error})") from error


NAMED = ("http", "https", "all")


def unusable_proxy(url: str = "") -> str:
    """Return a message about a proxy whose scheme httpx cannot use here; empty if there is none.

    Args:
        url: the requested address; empty for any. If this address needs no proxy, there is no message.
    """
    for name in NAMED:
        scheme, host = _parts(getproxies().get(name, ""))
        if scheme not in {"", "http", "https"} and (not url or through_proxy(url)):
            said = (
                f"{name.upper()}_PROXY names a proxy of the kind {scheme} ({host}); only http and https are supported"
            )
            return f"{said}; NO_PROXY names the hosts that need none"
    return ""


def through_proxy(url: str) -> str:
    """Return the end of an error message that names the proxy of a URL; empty if it has no proxy.

    The proxy's password is left out.
    """
    scheme, host = urlsplit(url).scheme, urlsplit(url).hostname or ""
    name = next((each for each in (scheme, "all") if each in getproxies()), "")
    if not name or proxy_bypass(host):
        return ""
    return f"; through the proxy {_parts(getproxies()[name])[1]} that {name.upper()}_PROXY names"


def _parts(address: str) -> tuple[str, str]:
    """Return the scheme and the host of a proxy's URL, without user and password."""
    parts = urlsplit(address if "://" in address else f"http://{address}") if address else urlsplit("")
    return parts.scheme, parts.netloc.rpartition("@")[2]


# Azure's own services, at an address that counts as public.
_CLOUD = ipaddress.ip_address("168.63.129.16")
# Their last 32 bits are an IPv4 address behind a gateway.
_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
_UNICAST, _TUNNELS = ipaddress.IPv6Network("2000::/3"), ipaddress.IPv6Network("2002::/16")


def is_public(address: str) -> bool:
    """Tell whether an IP address is public."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if any(ip in network for network in _EMBEDDING):
            ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        elif ip not in _UNICAST or ip in _TUNNELS:
            return False
    return ip.is_global and not ip.is_multicast and ip != _CLOUD


def public_addresses(host: str) -> tuple[str, ...]:
    """Return the addresses of a host, which must all be public.

    Raises:
        SourceUnavailableError: the host has no address, or one that is not public.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceUnavailableError(f"{host}: no address is known for it") from error
    addresses = tuple(dict.fromkeys(str(each[4][0]) for each in found))
    for address in addresses:
        check_public(host, address)
    return addresses


def check_public(host: str, address: str) -> None:
    """Refuse an address that is not public.

    Raises:
        SourceUnavailableError: the address is not public.
    """
    if not is_public(address):
        raise SourceUnavailableError(
            f"{host}: only addresses that everybody reaches are asked for a source that came over HTTP, and this is "
            "one of this machine, its networks or its cloud; a person at the machine may take "
            "'public_addresses_only' out of the file"
        )
