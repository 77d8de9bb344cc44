"""What all settings are made of: their base class, and checks of texts, addresses and hosts that need no network."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated
from urllib.parse import SplitResult, parse_qsl, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")
_EXPECTED = "expected http:// or https://, a host, no password, query or fragment"


def formed(pattern: str, expected: str) -> AfterValidator:
    """Return a validator that matches a text against ``pattern``; its error quotes ``expected``."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(f"{text!r}; expected {expected}")
        return text

    return AfterValidator(check)


class FrozenSettings(BaseModel):
    """Frozen settings that refuse unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def is_web_address(text: str) -> bool:
    """Tell whether a text starts like a web address and not like a file path."""
    return text.startswith(("https://", "http://"))


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_server(text: str) -> str:
    """Return a server's address in its normal form: lower case, no default port, no slash at the end.

    Raises:
        ValueError: it is not an address, or has parts that a server's address does not need.
    """
    return _normal(text, wildcard=False)


def checked_pattern(text: str) -> str:
    """Return the normal form of an address, which may begin with ``*.``.

    Raises:
        ValueError: it is not an address, or would match every host of a top-level domain.
    """
    return _normal(text, wildcard=True)


def origin_of(server: str) -> str:
    """Return a server's address without its path. The address must be in its normal form."""
    at = urlsplit(server)
    return f"{at.scheme}://{at.netloc}"


def is_allowed(server: str, pattern: str) -> bool:
    """Tell whether a server's address matches a pattern or is below it. Both must be in their normal form."""
    at, allowed = urlsplit(server), urlsplit(pattern)
    host, named = at.hostname or "", allowed.hostname or ""
    same_host = host.endswith(named[1:]) if named.startswith("*.") else host == named
    below = at.path == allowed.path or at.path.startswith(f"{allowed.path}/")
    return same_host and below and (at.scheme, at.port) == (allowed.scheme, allowed.port)


def _normal(text: str, *, wildcard: bool) -> str:
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise ValueError(_EXPECTED) from None
    name = host.removeprefix("*.") if wildcard else host
    is_plain = not any((parts.username, parts.password, parts.query, parts.fragment, "@" in parts.netloc))
    is_host = _is_address(name) or (len(name) <= 253 and _HOST.fullmatch(name) is not None)
    if parts.scheme not in _PORTS or not is_plain or set(text) & set("?#\\") or not is_host:
        raise ValueError(_EXPECTED)
    if name != host and ("." not in name or _is_address(name)):
        raise ValueError("'*.' must stand before a domain of at least two parts, such as *.example.org")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{_port(parts, port)}{_path(parts)}"


def _path(parts: SplitResult) -> str:
    if not _PATH.fullmatch(parts.path) or {".", ".."} & set(parts.path.split("/")):
        raise ValueError("the path of an address is of letters, digits and '._~-', without '..'")
    return parts.path.rstrip("/")


def _port(parts: SplitResult, port: int | None) -> str:
    return "" if port in {None, _PORTS[parts.scheme]} else f":{port}"


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def postgresql_url(text: str) -> str:
    """Return the address of a PostgreSQL database. Refuse an address that holds a password.

    Raises:
        ValueError: the address is of another kind or has a password. The message does not repeat the address.
    """
    try:
        parts = urlsplit(text)
        parameters = dict(parse_qsl(parts.query))
        password = parts.password
    except ValueError as error:
        raise ValueError("is not an address; expected postgresql://host/database") from error
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ValueError("expected an address such as postgresql://host/database")
    if password or parameters.keys() & {"password", "sslpassword"}:
        raise ValueError("holds a password; take it out and set PGPASSWORD, or write it into ~/.pgpass")
    return text
