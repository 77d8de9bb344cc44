"""Settings of who may ask, and which groups they are in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from nornweave.config.addresses import is_loopback, is_web_address
from nornweave.config.base import FrozenSettings

# With any of them a key that verifies cannot sign. Not `none`, nor HMAC, which a public key would do for.
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]


def checked_address(text: str) -> str:
    """Return an address whose answer nobody on the way can change.

    Raises:
        ValueError: it is neither ``https`` nor of this machine, or it holds a password.
    """
    parts = urlsplit(text)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if not is_safe or not parts.hostname or parts.username or parts.password or parts.fragment:
        raise ValueError("expected an https address without a password, such as https://login.example.org/realm")
    return text


def _checked_keys(text: str) -> str:
    return checked_address(text) if is_web_address(text) else text


class OidcSettings(FrozenSettings):
    """Tokens that an identity provider signs (JSON Web Tokens)."""

    issuer: Annotated[Text, AfterValidator(checked_address)]
    """As tokens name it (``iss``), to the letter."""
    audience: Annotated[tuple[Text, ...], Field(min_length=1, max_length=20)]
    """A token must name one of these (``aud``)."""
    groups_claim: Text = "groups"
    """The claim that holds the groups; ``realm_access.roles`` is one inside another."""
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


class AccessSettings(FrozenSettings):
    """Who may ask, besides who has the service token: at least one of ``tokens`` and ``oidc``."""

    tokens: Path | None = None
    """A file of tokens with their groups; `nornweave token` makes its lines."""
    oidc: OidcSettings | None = None
    operators: tuple[Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)], ...] = ()
    """Groups whose members see everything and operate the service."""

    @model_validator(mode="after")
    def _says_who(self) -> AccessSettings:
        if self.tokens is None and self.oidc is None:
            message = "key 'tokens' or 'oidc' is missing: nothing says who is in a group"
            raise ValueError(message)
        return self
