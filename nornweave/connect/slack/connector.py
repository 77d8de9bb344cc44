"""Slack: an export folder, or the Web API."""

from __future__ import annotations

from typing import ClassVar, Literal

from nornweave.config.base import Name
from nornweave.connect.mirror.settings import ApiSettings
from nornweave.connect.protocol import AT_ONCE, Connector, Source
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Domain


class SlackSettings(ApiSettings):
    """The keys of ``type: slack``."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CONVERSATIONS})
    place_keys: ClassVar[tuple[str, ...]] = ("path", "token_env")

    type: Literal["slack"] = "slack"
    channels: tuple[Name, ...] = ()
    """Names or ids; empty: every channel that the token's owner has joined."""
    api_url: str = "https://slack.com/api"


def _open(settings: SlackSettings, own: OwnFiles) -> Source:
    if settings.path is not None:
        from nornweave.connect.slack.export import SlackSource

        return SlackSource(settings, own)
    from nornweave.connect.mirror.mirrored import MirroredSource
    from nornweave.connect.slack.feed import SlackFeed

    return MirroredSource(settings, SlackFeed(settings), own.data_dir)


def _bound(settings: SlackSettings) -> str:
    if settings.path is not None:
        return AT_ONCE
    return (
        f"{AT_ONCE} for messages of the last 3 days; at most {settings.hours()} for older ones and for replies that "
        f"came or went; at most {settings.hours(30)} for edits of replies in older threads"
    )


SLACK = Connector(SlackSettings, _open, _bound)
