"""JSON Web Tokens of an identity provider: who they are of, and which groups they name."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from api.access.keys import SigningKeys
from nornweave.config.access import OidcSettings
from nornweave.core.access.rules import MAX_GROUPS, group_name

MAX_TOKEN_CHARACTERS = 16_384
MAX_NAME_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a token is of.

    Attributes:
        name: issuer and subject.
        expires: when the token does, seconds since 1970.
    """

    name: str
    groups: frozenset[str]
    expires: float


class Provider:
    """Checks tokens of one provider; may wait for its keys."""

    def __init__(self, settings: OidcSettings, keys: SigningKeys | None = None) -> None:
        self._settings = settings
        self._keys = keys or SigningKeys(settings)

    @staticmethod
    def takes(token: str) -> bool:
        """Tell whether a text has the shape of a JSON Web Token."""
        return token.count(".") == 2 and len(token) <= MAX_TOKEN_CHARACTERS

    def has_to_wait(self, token: str) -> bool:
        """Tell whether ``identity`` would ask for keys."""
        try:
            algorithm, key_id = self._header(token)
        except (jwt.PyJWTError, ValueError, TypeError):
            return False
        return algorithm is not None and self._keys.known(key_id, algorithm) is None

    def identity(self, token: str) -> Identity | None:
        """Return whom a token is of; ``None`` for one that is not valid, for whatever reason.

        Checked are the signature, by an algorithm and a key that the configuration allows, and ``exp``, ``nbf``,
        ``iat``, ``iss`` and ``aud``; ``exp`` and ``sub`` have to be there.

        Raises:
            ProblemError: 503, the provider's keys are not known.
        """
        try:
            algorithm, key_id = self._header(token)
            key = self._keys.usable(key_id, algorithm) if algorithm else None
            return self._checked(token, key.jwk, algorithm) if key and algorithm else None
        except (jwt.PyJWTError, ValueError, TypeError):
            return None

    def _header(self, token: str) -> tuple[str | None, str | None]:
        """Return the algorithm of a token, ``None`` for one that is not allowed, and the id of its key."""
        header = jwt.get_unverified_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        is_allowed = algorithm in self._settings.algorithms and "crit" not in header
        return algorithm if is_allowed else None, key_id if isinstance(key_id, str) else None

    def _checked(self, token: str, key: jwt.PyJWK, algorithm: str) -> Identity | None:
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            # The one that the key was chosen for: no other is tried, whatever the token says.
            algorithms=[algorithm],
            audience=list(self._settings.audience),
            issuer=self._settings.issuer,
            leeway=self._settings.leeway_s,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
        if isinstance(claims["exp"], bool) or not isinstance(claims["exp"], int | float):
            return None  # PyJWT (2.10) reads a text as a number
        subject = claims["sub"]
        groups = _groups(_claim(claims, self._settings.groups_claim))
        if not isinstance(subject, str) or not subject or len(subject) > MAX_NAME_CHARACTERS or groups is None:
            return None
        return Identity(f"{self._settings.issuer} {subject}", groups, min(float(claims["exp"]), time.time() + 86_400))


def _claim(claims: Mapping[str, Any], name: str) -> object:
    """Return a claim by its name, which may hold dots, or else by its path."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def _groups(claim: object) -> frozenset[str] | None:
    """Read groups: a name, or a list of names; none where the claim is missing, ``None`` where it is something else."""
    if claim is None:
        return frozenset()
    names = [claim] if isinstance(claim, str) else claim
    if not isinstance(names, list) or len(names) > MAX_GROUPS or not all(isinstance(one, str) for one in names):
        return None
    # As written: " board" is not the group "board".
    return frozenset(group_name(name) for name in names if name and name == name.strip())
