"""Which hosts are asked for a source that came over HTTP: those that everybody on the internet reaches.

Not this machine, its networks or the cloud that it runs in: what listens there trusts whoever reaches it.
"""

from __future__ import annotations

import ipaddress
import socket

from nornweave.core.errors import SourceUnavailableError

# Azure's own services, at an address that counts as public.
_CLOUD = ipaddress.ip_address("168.63.129.16")
# In their last 32 bits stands an IPv4 address that a gateway leads to.
_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
_UNICAST, _TUNNELS = ipaddress.IPv6Network("2000::/3"), ipaddress.IPv6Network("2002::/16")


def is_public(address: str) -> bool:
    """Tell whether an IP address is one that everybody reaches."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if any(ip in network for network in _EMBEDDING):
            ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        elif ip not in _UNICAST or ip in _TUNNELS:
            return False
    return ip.is_global and not ip.is_multicast and ip != _CLOUD


def public_addresses(host: str) -> tuple[str, ...]:
    """Resolve a host; of several addresses all have to be public.

    Raises:
        SourceUnavailableError: it has none, or one that not everybody reaches.
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
    """Refuse an address of a host.

    Raises:
        SourceUnavailableError: not everybody reaches it.
    """
    if not is_public(address):
        raise SourceUnavailableError(
            f"{host}: only addresses that everybody reaches are asked for a source that came over HTTP, and this is "
            "one of this machine, its networks or its cloud; a person at the machine may take "
            "'public_addresses_only' out of the file"
        )
