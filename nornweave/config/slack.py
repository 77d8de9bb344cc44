"""Settings of the Slack app: where it answers, and which groups people are in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from nornweave.config.access import checked_address
from nornweave.config.agents import Group
from nornweave.config.base import FrozenSettings

ChannelId = Annotated[str, StringConstraints(pattern=r"^[CG][A-Z0-9]{2,30}$")]
UserId = Annotated[str, StringConstraints(pattern=r"^[UW][A-Z0-9]{2,30}$")]


class SlackAppSettings(FrozenSettings):
    """What ``nornweave slack`` answers, and to whom. Ids, not names: names change, and anybody can take a free one."""

    channels: Annotated[Mapping[ChannelId, tuple[Group, ...]], Field(min_length=1)]
    """The channels that are answered, by id → groups that everybody in the channel is in; none: what is for everybody.
    """
    people: Mapping[UserId, tuple[Group, ...]] = {}
    """Members of the workspace, by id → groups that they are in; nobody else is in one."""
    api_url: Annotated[str, AfterValidator(checked_address)] = "https://slack.com/api"
