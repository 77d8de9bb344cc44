"""Servers that stand in for APIs: real HTTP, documented shapes, errors and paging, over a model that tests change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evals.apis import github, site
from evals.apis.server import Api
from nornweave.sources.remote.api_client import Limits
from nornweave.sources.remote.feed import Feed
from nornweave.sources.remote.github import GithubFeed
from nornweave.sources.remote.web import WebFeed
from nornweave.types import Domain


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
    "web": StandIn(
        large=site.large,
        feed=lambda url, limits: WebFeed(f"{url}/guide/", domain=Domain.DOCUMENTATION, max_pages=20_000, limits=limits),
    ),
}
