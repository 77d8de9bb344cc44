"""What a site's robots.txt allows.

``protego`` reads it by RFC 9309: wildcards, the longest rule decides. The standard library's parser knows no wildcards
and takes the first rule that fits.

Source: RFC 9309.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from protego import Protego

from nornweave.connect.mirror.answers import OtherHostError
from nornweave.connect.mirror.api_client import ApiClient

AGENT = "nornweave"
MAX_DELAY_S = 10.0
"""The longest pause between two requests that a site may ask for; of a longer one this much is kept."""
# RFC 9309, 2.5: at least 500 KiB have to be read.
_MAX_BYTES = 512 * 1024
# A refusal means that there are no rules (2.3.1.3); a rate limit is none.
_REFUSALS = frozenset(range(400, 500)) - {429}


class Robots:
    """The rules of the hosts of one source; each robots.txt is asked for once, when it is needed first."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._rules: dict[str, Protego] = {}

    def allows(self, address: str) -> bool:
        """Say whether a page may be asked for.

        Raises:
            SourceUnavailableError: robots.txt cannot be read now, so that nothing may be asked for.
        """
        return bool(self._of(address).can_fetch(address, AGENT))

    def delay_s(self, address: str) -> float:
        """Return the pause that the site asks for between two requests, at most ``MAX_DELAY_S``."""
        delay = self._of(address).crawl_delay(AGENT) or 0.0
        return min(max(float(delay), 0.0), MAX_DELAY_S)

    def sitemaps(self, address: str) -> tuple[str, ...]:
        """Return the sitemaps that robots.txt names, as it names them."""
        return tuple(self._of(address).sitemaps)

    def _of(self, address: str) -> Protego:
        parts = urlsplit(address)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._rules:
            self._rules[origin] = Protego.parse(self._read(f"{origin}/robots.txt"))
        return self._rules[origin]

    def _read(self, address: str) -> str:
        try:
            answer = self._client.get(address, headers={"Accept": "text/plain,*/*;q=0.5"}, allowed=_REFUSALS)
        except OtherHostError:
            return ""
        if not 200 <= answer.status < 300:
            return ""
        return answer.content[:_MAX_BYTES].decode("utf-8", "replace")
