"""Which addresses of an API may be asked, and what of them no message shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, urljoin, urlsplit

import httpx

from nornweave.connect.mirror.answers import OtherHostError
from nornweave.core.errors import ConfigError

_TOKEN = re.compile(r"[\x21-\x7e]+")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class ApiOrigin:
    """The hosts of an API.

    Args:
        base_url: relative addresses are joined to it.
        hosts: further hosts that may be asked, ``host`` or ``host:port``, by the API's scheme or by https.
        secrets: sent to the API's host only.
        parameters: of the query of every request; their values are secrets too.
        token_name: where the secrets come from.

    Raises:
        ConfigError: the address or a secret has the wrong form, or a secret would be sent unencrypted or elsewhere.
    """

    def __init__(
        self,
        base_url: str,
        hosts: frozenset[str],
        secrets: Iterable[str | None],
        parameters: Mapping[str, str],
        token_name: str,
    ) -> None:
        self.parameters = parameters
        self._secrets = [each for each in (*secrets, *parameters.values()) if each]
        self._base, self._hosts = base_url.rstrip("/") + "/", hosts
        self._host = _place(base_url)[:2]
        scheme, host, hostname = _place(base_url)
        if scheme not in ("http", "https") or not host or "@" in host:
            raise ConfigError("the address of the API: expected such as 'https://api.example.org', without a password")
        if not all(map(_TOKEN.fullmatch, self._secrets)):
            raise ConfigError(f"{token_name}: expected printable characters without blanks (it is not shown here)")
        if self._secrets and scheme == "http" and hostname not in _LOOPBACK:
            raise ConfigError(f"{base_url!r} would send {token_name} unencrypted; expected https")
        if self._secrets and hosts:
            raise ConfigError(f"{token_name}: expected no token where several hosts are asked")

    def address(self, target: str, page: str | None = None) -> str:
        """Return a whole address: of what is relative to the API's, or stands in a page.

        Raises:
            OtherHostError: it is another host's.
        """
        url = urljoin(page or self._base, target)
        scheme, host, _ = _place(url)
        if (scheme, host) != self._host and not (host in self._hosts and scheme in (self._host[0], "https")):
            raise OtherHostError(f"{self._base}: leads to {self.hide(url)!r} on another host; check the address")
        return url

    def hide(self, text: str) -> str:
        """Return what a server said without the secrets, which it may repeat."""
        for secret in self._secrets:
            text = text.replace(secret, "…").replace(quote(secret, safe=""), "…")
        return text

    def shown(self, url: httpx.URL) -> str:
        """Return the address of a request as messages show it."""
        for name in self.parameters:
            url = url.copy_remove_param(name)
        return str(url)


def _place(url: str) -> tuple[str, str, str | None]:
    """Return scheme, host with port, and host."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", "", None
    return parts.scheme, parts.netloc, parts.hostname
