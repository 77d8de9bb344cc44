"""Settings of agents on other machines, and of the Slack app: who may join, and whom their items are shown to."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from nornweave.config.access import checked_address
from nornweave.config.addresses import checked_pattern
from nornweave.config.base import FrozenSettings, formed

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Pattern = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(checked_pattern)]
Group = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
    AfterValidator(lambda name: unicodedata.normalize("NFC", name)),
]


class AllowedAgent(FrozenSettings):
    """An address at which agents may be, the token that they are shown, and whom their items are shown to.

    At most one of ``public``, ``groups`` and ``checks_groups``. With none of them the items are for those who see
    everything and, where no ``access`` is configured, for everybody.
    """

    url: Pattern
    """``https://agents.example.org``, ``https://*.example.org`` or ``http://10.0.0.5:8082``, with a path if need be."""
    token_env: VariableName | None = None
    """The environment variable with the token that this server shows the agent."""
    public: bool = False
    """The items are for everybody who may ask."""
    groups: tuple[Group, ...] = ()
    """The items are for members of these groups."""
    checks_groups: bool = False
    """The agent is told the viewer's groups and shows what they may see: NornWeave does."""
    links: tuple[Pattern, ...] = ()
    """Where links of its items may lead beside the agent's own host; links to elsewhere are left out."""

    @model_validator(mode="after")
    def _one_audience(self) -> AllowedAgent:
        if sum((self.public, bool(self.groups), self.checks_groups)) > 1:
            raise ValueError("expected at most one of 'public', 'groups' and 'checks_groups'")
        return self


class AgentsSettings(FrozenSettings):
    """Agents on other machines."""

    allow: Annotated[tuple[AllowedAgent, ...], Field(min_length=1, max_length=100)]
    """Where they may be; the first entry that matches counts."""
    registration_token_env: VariableName | None = None
    """The environment variable with the token that agents register with; without it operators register them."""
    lease_s: float = Field(30.0, ge=1, le=3_600)
    """An agent that was silent for so long is not asked any more."""
    wait_s: float = Field(2.0, ge=0.05, le=600)
    """A question waits at most so long for an agent elsewhere, and less for one whose answers are usually quick."""
    budget_s: float = Field(0.5, ge=0, le=600)
    """And at most so long once the agents here have answered; where none is asked here, once half of them have."""

    @field_validator("allow", mode="before")
    @classmethod
    def _addresses_alone(cls, entries: object) -> object:
        if not isinstance(entries, list | tuple):
            return entries
        return [{"url": entry} if isinstance(entry, str) else entry for entry in entries]


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
