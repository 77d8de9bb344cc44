"""Servers that stand in for APIs: real HTTP, documented shapes, errors and paging, over a model that tests change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lab.apis import confluence, feed, github, jira, site, slack, stackexchange
from lab.apis.server import Api
from nornweave.connect.confluence.feed import ConfluenceFeed
from nornweave.connect.feed.feed import SyndicationFeed
from nornweave.connect.github.feed import GithubFeed
from nornweave.connect.jira.feed import JiraFeed
from nornweave.connect.mirror.answers import Limits
from nornweave.connect.mirror.feed import Feed
from nornweave.connect.slack.feed import SlackFeed
from nornweave.connect.stackexchange.feed import StackExchangeFeed
from nornweave.connect.web.feed import WebFeed
from nornweave.core.types import Domain


@dataclass(frozen=True, slots=True)
class StandIn:
    """An API and the feed that reads it.

    Attributes:
        large: returns a server with about so many documents.
        feed: reads the server at an address.
    """

    large: Callable[[int], Api]
    feed: Callable[[str, Limits], Feed]


STAND_INS: Mapping[str, StandIn] = {
    "github": StandIn(
        large=github.large,
        feed=lambda url, limits: GithubFeed(github.REPOSITORY, api_url=url, token=github.TOKEN, limits=limits),
    ),
    "confluence": StandIn(
        large=confluence.large,
        feed=lambda url, limits: ConfluenceFeed(url, user=confluence.USER, token=confluence.TOKEN, limits=limits),
    ),
    "jira": StandIn(
        large=jira.large,
        feed=lambda url, limits: JiraFeed(url, user=jira.USER, token=jira.TOKEN, limits=limits),
    ),
    "feed": StandIn(
        large=feed.large,
        feed=lambda url, limits: SyndicationFeed(f"{url}{feed.PATH}", Domain.DOCUMENTATION, limits=limits),
    ),
    "web": StandIn(
        large=site.large,
        feed=lambda url, limits: WebFeed(f"{url}/guide/", domain=Domain.DOCUMENTATION, max_pages=20_000, limits=limits),
    ),
    "slack": StandIn(
        large=slack.large,
        feed=lambda url, limits: SlackFeed(api_url=f"{url}/api", token=slack.TOKEN, limits=limits),
    ),
    "stackexchange": StandIn(
        large=stackexchange.large,
        feed=lambda url, limits: StackExchangeFeed(stackexchange.SITE, ["python"], api_url=f"{url}/2.3", limits=limits),
    ),
}
