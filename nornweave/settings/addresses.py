"""What an address or a host says by itself, without asking anybody."""

from __future__ import annotations

import ipaddress


def is_web_address(text: str) -> bool:
    """Tell whether something begins as an address of the web does, and not as a file."""
    return text.startswith(("https://", "http://"))


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, so that nobody else reaches it or listens on the way."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
