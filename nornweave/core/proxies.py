"""The proxies that the environment names: said where one cannot be used, or nobody answers behind it."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

NAMED = ("http", "https", "all")


def unusable_proxy(url: str = "") -> str:
    """Say which proxy of the environment is of a kind that httpx cannot use here; empty if none is.

    Args:
        url: what is asked for: if it is asked through none, nothing is wrong.
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
    """Say through which proxy an address is asked, for errors; empty if through none. No password is shown."""
    scheme, host = urlsplit(url).scheme, urlsplit(url).hostname or ""
    name = next((each for each in (scheme, "all") if each in getproxies()), "")
    if not name or proxy_bypass(host):
        return ""
    return f"; through the proxy {_parts(getproxies()[name])[1]} that {name.upper()}_PROXY names"


def _parts(address: str) -> tuple[str, str]:
    """Return the kind and the place of a proxy, without user and password."""
    parts = urlsplit(address if "://" in address else f"http://{address}") if address else urlsplit("")
    return parts.scheme, parts.netloc.rpartition("@")[2]
