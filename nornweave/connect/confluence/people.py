"""Ask Confluence for the names of accounts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nornweave.connect.confluence.content import Content
from nornweave.connect.confluence.lists import API
from nornweave.connect.conversation import as_is, mappings
from nornweave.connect.mirror.atlassian import AtlassianSite
from nornweave.connect.mirror.feed import FeedRecord, Known
from nornweave.core.errors import SourceUnavailableError

MAX_PEOPLE = 100
"""Names of one request."""
_ACCOUNT = re.compile(r"[\w:.-]{1,200}", re.ASCII)


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
