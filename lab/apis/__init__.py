"""Servers that stand in for APIs: real HTTP, documented shapes, errors and paging, over a model that tests change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from lab.apis import confluence, feed, github, gitlab, jira, site, slack, stackexchange
from lab.apis.server import Api
from nornweave.config.sources import MirroredSettings
from nornweave.connect.confluence import ConfluenceFeed
from nornweave.connect.connectors import (
    ConfluenceSettings,
    FeedSettings,
    GithubSettings,
    GitlabSettings,
    JiraSettings,
    SlackSettings,
    StackExchangeSettings,
    WebSettings,
)
from nornweave.connect.feed import SyndicationFeed
from nornweave.connect.github import GithubFeed
from nornweave.connect.gitlab import GitlabFeed, GitlabWiki
from nornweave.connect.jira import JiraFeed
from nornweave.connect.mirror.feed import Feed
from nornweave.connect.slack.feed import SlackFeed
from nornweave.connect.stackexchange.feed import StackExchangeFeed
from nornweave.connect.web.feed import WebFeed
from nornweave.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class StandIn:
    """An API and the feed that reads it.

    Attributes:
        large: returns a server with about so many documents.
        keys: of the settings for the server at an address; ``token`` is what the environment holds.
    """

    large: Callable[[int], Api]
    kind: type[MirroredSettings]
    feed: Callable[..., Feed]
    keys: Callable[[str], Mapping[str, Any]]

    def settings(self, url: str, /, **keys: Any) -> Any:
        """Return the settings that read the server at an address; ``keys`` replace those of the table.

        Raises:
            ConfigError: a key has the wrong form.
        """
        given = {"id": "source", "domain": min(self.kind.domains), **self.keys(url), **keys}
        token = given.pop("token", None)
        changed = {"token": property(lambda _: token), "_is_own_host": lambda _: True, "__module__": __name__}
        kind = type(self.kind.__name__, (self.kind,), changed)
        try:
            return kind(**given)
        except ValidationError as error:
            raise ConfigError("; ".join(problem["msg"] for problem in error.errors())) from error


STAND_INS: Mapping[str, StandIn] = {
    "github": StandIn(
        github.large,
        GithubSettings,
        GithubFeed,
        lambda url: {"repository": github.REPOSITORY, "api_url": url, "token": github.TOKEN},
    ),
    "gitlab": StandIn(
        gitlab.large,
        GitlabSettings,
        GitlabFeed,
        lambda url: {"project": gitlab.PROJECT, "url": url, "token": gitlab.TOKEN},
    ),
    "gitlab-wiki": StandIn(
        gitlab.large_wiki,
        GitlabSettings,
        GitlabWiki,
        lambda url: {"project": gitlab.PROJECT, "url": url, "token": gitlab.TOKEN, "domain": "documentation"},
    ),
    "confluence": StandIn(
        confluence.large,
        ConfluenceSettings,
        ConfluenceFeed,
        lambda url: {"url": url, "user": confluence.USER, "token": confluence.TOKEN},
    ),
    "jira": StandIn(
        jira.large, JiraSettings, JiraFeed, lambda url: {"url": url, "user": jira.USER, "token": jira.TOKEN}
    ),
    "feed": StandIn(feed.large, FeedSettings, SyndicationFeed, lambda url: {"url": f"{url}{feed.PATH}"}),
    "web": StandIn(site.large, WebSettings, WebFeed, lambda url: {"url": f"{url}/guide/", "max_pages": 20_000}),
    "slack": StandIn(
        slack.large,
        SlackSettings,
        SlackFeed,
        lambda url: {"api_url": f"{url}/api", "token_env": "SLACK_TOKEN", "token": slack.TOKEN},
    ),
    "stackexchange": StandIn(
        stackexchange.large,
        StackExchangeSettings,
        StackExchangeFeed,
        lambda url: {"api_url": f"{url}/2.3", "site": stackexchange.SITE, "tags": ("python",)},
    ),
}
