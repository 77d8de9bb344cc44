"""Settings of access: tokens and their groups, remote agents, the Slack app."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from nornweave.config.base import (
    EnvironmentName,
    FrozenSettings,
    Name,
    Text,
    checked_pattern,
    formed,
    is_loopback,
    is_web_address,
)

# With these algorithms a public key can only verify. `none` and HMAC are excluded: a public key could sign.
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]

Group = Annotated[Name, AfterValidator(lambda name: unicodedata.normalize("NFC", name))]
Scope = Annotated[str, formed(r"[!#-\[\]-~]{1,200}", "a scope such as openid, without blanks")]


def checked_address(text: str) -> str:
    """Return an address. Refuse plain HTTP to another machine, because answers can be forged on the way.

    Raises:
        ValueError: the address is neither ``https`` nor on this machine, or it holds a password.
    """
    parts = urlsplit(text)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if not is_safe or not parts.hostname or parts.username or parts.password or parts.fragment:
        raise ValueError("expected an https address without a password, such as https://login.example.org/realm")
    return text


def _checked_keys(text: str) -> str:
    return checked_address(text) if is_web_address(text) else text


class OidcSettings(FrozenSettings):
    """An identity provider. It signs JSON Web Tokens. If ``client_id`` is set, people sign in there in the browser."""

    issuer: Annotated[Text, AfterValidator(checked_address)]
    """As tokens name it (``iss``), to the letter."""
    audience: Annotated[tuple[Text, ...], Field(max_length=20)] = ()
    """A bearer token must name one of these (``aud``); without any, none is accepted and people sign in alone."""
    client_id: Text | None = None
    """As the provider knows this service; people sign in at the provider where it is given."""
    client_secret_env: EnvironmentName | None = None
    """The environment variable with the client's secret; a public client has none and is protected by PKCE alone."""
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1, max_length=50)] = ("openid", "email", "profile")
    """What is asked for at sign-in; many providers give a refresh token for ``offline_access`` alone."""
    renew_s: float = Field(3_600.0, ge=60, le=43_200)
    """What a browser's session says of its person is asked for anew at the provider after so many seconds."""
    groups_claim: Text = "groups"
    """The claim that holds the groups; ``realm_access.roles`` is one inside another."""
    email_claim: Text = "email"
    """The claim with a person's address of e-mail, by which sources know them."""
    email_verified: Literal["claim", "always"] = "claim"
    """The address counts if ``email_verified`` is true; ``always``: nobody writes their own there."""
    admit: Annotated[tuple[Group, ...], Field(max_length=1_000)] = ()
    """Whoever is in none of these groups is nobody; without any, everybody whom the provider knows may ask."""
    jwks: Annotated[Text, AfterValidator(_checked_keys)] | None = None
    """Address or file of the provider's keys (JSON Web Key Set); found through the issuer unless given."""
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)] = ("RS256", "ES256")
    leeway_s: float = Field(30.0, ge=0, le=300)
    """By how much the clocks of provider and server may differ."""
    keys_fresh_s: float = Field(3_600.0, ge=1, le=86_400)
    """Keys are read again after so many seconds; those that cannot be read again are used for a day."""

    @model_validator(mode="before")
    @classmethod
    def _one_audience(cls, values: object) -> object:
        if isinstance(values, dict) and isinstance(values.get("audience"), str):
            return {**values, "audience": (values["audience"],)}
        return values

    @model_validator(mode="after")
    def _is_for_something(self) -> OidcSettings:
        if not self.audience and self.client_id is None:
            raise ValueError("key 'audience' or 'client_id' is missing: no token would be accepted")
        if self.client_id is None and self.client_secret_env is not None:
            raise ValueError("key 'client_id' is missing beside 'client_secret_env'")
        if "openid" not in self.scopes:
            raise ValueError("'scopes' must name 'openid'; the provider says who somebody is for nothing else")
        return self


class MembershipSettings(FrozenSettings):
    """The operator's file of members, and how long the members that sources name are valid (``rights: source``)."""

    file: Path | None = None
    """Of the operator: the accounts and principals of people and groups."""
    max_age_hours: float = Field(24.0, gt=0, le=24 * 30)
    """What a source said of its members counts for so long after it said so."""


class AccessSettings(FrozenSettings):
    """Who may ask: holders of the service token, and people and programs that ``tokens`` or ``oidc`` accepts."""

    tokens: Path | None = None
    """A file of tokens with their groups; `nornweave token` makes its lines."""
    oidc: OidcSettings | None = None
    operators: tuple[Name, ...] = ()
    """Groups whose members see everything and operate the service."""
    membership: MembershipSettings = MembershipSettings()
    max_token_days: int = Field(90, ge=0, le=366)
    """A token that somebody makes of their own lasts so many days at most; with 0 nobody makes any."""

    @model_validator(mode="after")
    def _check_tokens_or_oidc(self) -> AccessSettings:
        if self.tokens is None and self.oidc is None:
            message = "key 'tokens' or 'oidc' is missing: nothing says who is in a group"
            raise ValueError(message)
        return self


Pattern = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(checked_pattern)]


class AllowedAgent(FrozenSettings):
    """An address of remote agents, the token to send them, and the viewers who may see their items.

    At most one of ``public``, ``groups`` and ``checks_groups`` is set. If none is set, only viewers who see everything
    see the items; without ``access`` in the configuration, that is everybody.
    """

    url: Pattern
    """``https://agents.example.org``, ``https://*.example.org`` or ``http://10.0.0.5:8082``, with a path if need be."""
    token_env: EnvironmentName | None = None
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
    """Remote agents."""

    allow: Annotated[tuple[AllowedAgent, ...], Field(min_length=1, max_length=100)]
    """Where they may be; the first entry that matches counts."""
    registration_token_env: EnvironmentName | None = None
    """The environment variable with the token that agents register with; without it operators register them."""
    lease_s: float = Field(30.0, ge=1, le=3_600)
    """An agent that was silent for so long is not asked any more."""
    wait_s: float = Field(2.0, ge=0.05, le=600)
    """A question waits at most so long for an agent elsewhere."""
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
    """Channels in which ``nornweave slack`` answers, and people. The keys are ids, because names can change hands."""

    channels: Annotated[Mapping[SlackId, tuple[Group, ...]], Field(min_length=1)]
    """The channels that are answered, by id → groups that everybody in the channel is in; none: what is for everybody.
    """
    people: Mapping[SlackId, tuple[Group, ...]] = {}
    """Members of the workspace, by id → groups that they are in; nobody else is in one."""
    api_url: Annotated[str, AfterValidator(checked_address)] = "https://slack.com/api"
