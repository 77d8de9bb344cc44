"""Settings of the Slack app: where it answers, and which groups people are in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from nornweave.config.access import checked_address
from nornweave.config.agents import Group
from nornweave.config.base import FrozenSettings, formed

SlackId = Annotated[
    str, formed(r"[CGUW][A-Z0-9]{2,30}", "an id such as C0123456789 (docs/slack.md says where it stands)")
]


class SlackAppSettings(FrozenSettings):
    """What ``nornweave slack`` answers, and to whom. Ids, not names: names change, and anybody can take a free one."""

    channels: Annotated[Mapping[SlackId, tuple[Group, ...]], Field(min_length=1)]
    """The channels that are answered, by id → groups that everybody in the channel is in; none: what is for everybody.
    """
    people: Mapping[SlackId, tuple[Group, ...]] = {}
    """Members of the workspace, by id → groups that they are in; nobody else is in one."""
    api_url: Annotated[str, AfterValidator(checked_address)] = "https://slack.com/api"
