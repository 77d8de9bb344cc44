"""The lists of Confluence's REST API, pages of results one after another, and the names of accounts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from nornweave.connect.confluence.document import Content, id_of
from nornweave.connect.conversation import as_is, mappings
from nornweave.connect.mirror.atlassian import MAX_REQUESTS, AtlassianSite, listed
from nornweave.connect.mirror.feed import FeedRecord, Known, PositionLostError
from nornweave.core.errors import SourceUnavailableError

API = "wiki/api/v2"
WITHOUT_BODIES = 250
"""Of a list without bodies: as many as the API gives."""
MAX_PEOPLE = 100
"""Names of one request."""
SPACE_KEY = re.compile(r"~?[A-Za-z0-9][\w:.-]{0,254}", re.ASCII)
_ACCOUNT = re.compile(r"[\w:.-]{1,200}", re.ASCII)


class ConfluenceLists:
    """The lists of one site, restricted to some spaces or to none."""

    def __init__(self, site: AtlassianSite, spaces: Sequence[str]) -> None:
        self._site = site
        self._spaces = spaces

    def spaces(self) -> tuple[FeedRecord, ...]:
        """Read the spaces.

        Raises:
            SourceUnavailableError: one that is named is not there, or there is none at all.
        """
        parameters: dict[str, str | int] = {"limit": WITHOUT_BODIES}
        parameters |= {"keys": ",".join(self._spaces)} if self._spaces else {"status": "current"}
        records = []
        for content in (each for _, results, _ in self.pages_of("spaces", parameters) for each in results):
            key, name = str(content["key"]), as_is(content.get("name"), str)
            body = {"key": key if SPACE_KEY.fullmatch(key) else id_of(content["id"]), "name": name or key}
            records.append(FeedRecord(key=f"space/{id_of(content['id'])}/", document="", body=body))
        found = {str(record.body["key"]).casefold() for record in records}
        missing = [key for key in self._spaces if key.casefold() not in found]
        if missing:
            raise SourceUnavailableError(
                f"{self._site.address}: no space {', '.join(missing)}; check the key, and that the account may read it"
            )
        if not records:
            raise SourceUnavailableError(
                f"{self._site.address}: no space at all; check 'user' and the token, and that the account may read one"
            )
        return tuple(records)

    def pages_of(
        self, address: str, parameters: Mapping[str, str | int], cursor: str | None = None
    ) -> Iterator[tuple[Mapping[str, Any], list[dict[str, Any]], str | None]]:
        """Yield the pages of a list, as ``page_of`` returns them."""
        for _ in range(MAX_REQUESTS):
            content, results, cursor = self.page_of(address, parameters, cursor)
            yield content, results, cursor
            if cursor is None:
                return
        raise SourceUnavailableError(f"{address}: more than {MAX_REQUESTS:,} pages; expected an end")

    def page_of(
        self, address: str, parameters: Mapping[str, str | int], cursor: str | None = None
    ) -> tuple[Mapping[str, Any], list[dict[str, Any]], str | None]:
        """Ask for a page of a list; return the answer, its results and the cursor of the page after it."""
        asked = {**parameters, **({"cursor": cursor} if cursor else {})}
        content = self._site.get(f"{API}/{address}", asked, resumed=cursor is not None)
        following = _cursor(content)
        if following is not None and following == cursor:
            raise PositionLostError(f"{address}: the page after a page is the same one; expected another")
        return content, listed(content, "results", address), following

    def parameters(self, known: Known) -> dict[str, str | int]:
        """Return the parameters that name the spaces of a list."""
        parameters: dict[str, str | int] = {"status": "current"}
        if self._spaces:
            parameters["space-id"] = ",".join(key.split("/")[1] for key, _ in known.surviving("space/"))
        return parameters

    def base(self, content: Mapping[str, Any]) -> str:
        """Return the address that links of an answer are relative to."""
        base = as_is((as_is(content.get("_links"), dict) or {}).get("base"), str) or ""
        return base.rstrip("/") if re.match(r"https?://", base) else f"{self._site.address}/wiki"


class PeopleReader:
    """Asks for names during one pass; an account that may not ask for them does without."""

    def __init__(self, site: AtlassianSite) -> None:
        self._site = site
        self._asks = True

    def unknown(self, contents: Sequence[Content], known: Known) -> Iterator[FeedRecord]:
        """Yield the names of accounts that are not known yet; an account that may not ask for names does without."""
        accounts = dict.fromkeys(account for each in contents for account in each.accounts())
        unknown = [each for each in accounts if _ACCOUNT.fullmatch(each) and known.body(f"user/{each}/") is None]
        for start in range(0, len(unknown), MAX_PEOPLE):
            if not self._asks:
                return
            try:
                body = {"accountIds": unknown[start : start + MAX_PEOPLE]}
                people = mappings(self._site.post(f"{API}/users-bulk", body).get("results"))
            except SourceUnavailableError:
                self._asks = False
                return
            for each in people:
                account, name = str(each.get("accountId")), as_is(each.get("displayName"), str)
                if name and _ACCOUNT.fullmatch(account):
                    yield FeedRecord(key=f"user/{account}/", document="", body={"name": name})


def _cursor(content: Mapping[str, Any]) -> str | None:
    """Return the cursor of the next page; only it is taken from the address that an answer names."""
    following = as_is((as_is(content.get("_links"), dict) or {}).get("next"), str)
    return dict(parse_qsl(urlsplit(following).query)).get("cursor") if following else None
