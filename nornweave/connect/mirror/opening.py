"""Open the feed that an entry of ``sources:`` describes."""

from __future__ import annotations

import os

from nornweave.config import SourceSettings, SourceType
from nornweave.connect.confluence.feed import ConfluenceFeed
from nornweave.connect.github import feed as github
from nornweave.connect.github.feed import GithubFeed
from nornweave.connect.jira.feed import JiraFeed
from nornweave.connect.mirror import atlassian
from nornweave.connect.mirror.feed import Feed
from nornweave.connect.slack import feed as slack
from nornweave.connect.slack.feed import SlackFeed
from nornweave.connect.stackexchange import feed as stackexchange
from nornweave.connect.stackexchange.feed import StackExchangeFeed
from nornweave.connect.web.feed import WebFeed
from nornweave.core.errors import ConfigError

# Where a token is looked for when the source does not name a variable.
_TOKEN_NAMES = {
    SourceType.GITHUB: "GITHUB_TOKEN",
    SourceType.CONFLUENCE: atlassian.TOKEN_NAME,
    SourceType.JIRA: atlassian.TOKEN_NAME,
}


def missing_token(settings: SourceSettings) -> str | None:
    """Say which environment variable a source names that is not set; ``None`` if nothing is missing."""
    name = settings.token_env
    return f"token_env names {name}, which is not set" if name and not _token(name) else None


def open_feed(settings: SourceSettings) -> Feed:
    """Return the feed; nothing is asked yet.

    Raises:
        ConfigError: a key has the wrong form.
    """
    name = settings.token_env or _TOKEN_NAMES.get(settings.type, "token_env")
    token, url = _token(name), settings.url or ""
    match settings.type:
        case SourceType.GITHUB:
            api_url = settings.api_url or github.PUBLIC_API
            return GithubFeed(settings.repository or "", api_url=api_url, token=token, token_name=name)
        case SourceType.CONFLUENCE:
            return ConfluenceFeed(url, spaces=settings.spaces, user=settings.user, token=token, token_name=name)
        case SourceType.JIRA:
            return JiraFeed(url, projects=settings.projects, user=settings.user, token=token, token_name=name)
        case SourceType.SLACK:
            api_url = settings.api_url or slack.PUBLIC_API
            return SlackFeed(settings.channels, api_url=api_url, token=token, token_name=name)
        case SourceType.STACKEXCHANGE:
            api_url = settings.api_url or stackexchange.PUBLIC_API
            return StackExchangeFeed(settings.site or "", settings.tags, api_url=api_url, key=token, key_name=name)
        case SourceType.WEB:
            return WebFeed(
                url,
                domain=settings.domain,
                prefix=settings.prefix,
                hosts=settings.hosts,
                max_pages=settings.max_pages,
                include=settings.include,
                exclude=settings.exclude,
            )
        case _:
            raise ConfigError(f"sources[{settings.id}]: type {settings.type.value} cannot be read over the network")


def _token(name: str) -> str | None:
    """Return a token from the environment, without the line end that a file of secrets ends with."""
    return (os.environ.get(name) or "").strip() or None
