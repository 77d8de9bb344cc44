"""JSON Web Tokens of an identity provider: the identity of each and its groups.

The provider's keys are fetched from an address or read from a file, and cached. So is its description of itself.
"""

from __future__ import annotations

import hmac
import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt

from api.access.tokens import broken_access
from nornweave.config.access import OidcSettings, checked_address
from nornweave.config.base import is_web_address
from nornweave.core.access import MAX_GROUPS, account, group_name, is_principal
from nornweave.core.network import ACCEPTED, decoded

log = logging.getLogger(__name__)

MAX_TOKEN_CHARACTERS = 16_384
MAX_NAME_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Identity:
    """The person or program that a token belongs to.

    Attributes:
        name: issuer and subject.
        groups: the groups that the provider names and, if wanted, the accounts that it proves.
        expires: when the token expires, seconds since 1970.
    """

    name: str
    groups: frozenset[str]
    expires: float


class Provider:
    """Checks tokens of one provider. A check may wait until the provider's keys are read."""

    def __init__(
        self, settings: OidcSettings, keys: SigningKeys | None = None, *, names_accounts: bool = False
    ) -> None:
        """Store the parameters. The provider is not asked yet.

        Args:
            keys: the keys of the provider; ``None`` to read them from the address that ``settings`` or its description
                names.
            names_accounts: add the accounts that the provider proves to an identity's groups.
        """
        self._settings = settings
        self._keys = keys or SigningKeys(settings)
        self._names_accounts = names_accounts

    def takes(self, token: str) -> bool:
        """Tell whether bearer tokens are accepted and a text has the shape of a JSON Web Token."""
        return bool(self._settings.audience) and _has_shape(token)

    def knows(self, name: str) -> bool:
        """Tell whether an identity's name belongs to this provider."""
        return name.startswith(f"{self._settings.issuer} ")

    def admits(self, groups: Collection[str]) -> bool:
        """Tell whether somebody in these groups may ask."""
        return not self._settings.admit or not set(self._settings.admit).isdisjoint(groups)

    def has_to_wait(self, token: str) -> bool:
        """Tell whether checking a token would have to fetch the provider's keys first."""
        try:
            algorithm, key_id = self._header(token)
        except (jwt.PyJWTError, ValueError, TypeError):
            return False
        return algorithm is not None and self._keys.known(key_id, algorithm) is None

    def identity(self, token: str) -> Identity | None:
        """Return the identity of a token; ``None`` if the token is not valid.

        This checks the signature, by an allowed algorithm and key, and the claims ``exp``, ``nbf``,
        ``iat``, ``iss`` and ``aud``. ``exp`` and ``sub`` are required.

        Raises:
            ProblemError: 503, the provider's keys are not known.
        """
        claims = self._claims(token, self._settings.audience)
        return self._identity(claims) if claims else None

    def signed_in(self, token: str, nonce: str | None) -> Identity | None:
        """Return the identity of an ID token that the provider made for this client; ``None`` if it is not valid.

        Args:
            nonce: the nonce of the browser's request to the provider; ``None`` for a renewed token.

        Raises:
            ProblemError: 503, the provider's keys are not known.

        Source: OpenID Connect Core 1.0, 3.1.3.7 and 12.2.
        """
        client = self._settings.client_id
        claims = self._claims(token, (client,)) if client and _has_shape(token) else None
        if not claims or "iat" not in claims or claims.get("azp", client) != client:
            return None
        if claims["aud"] not in (client, [client]) and "azp" not in claims:
            return None  # the token has other audiences too, and does not name the party that may use it
        if nonce is not None and not hmac.compare_digest(str(claims.get("nonce")).encode(), nonce.encode()):
            return None
        return self._identity(claims)

    def _claims(self, token: str, audience: Collection[str]) -> Mapping[str, Any] | None:
        try:
            algorithm, key_id = self._header(token)
            key = self._keys.usable(key_id, algorithm) if algorithm else None
            return self._checked(token, key.jwk, algorithm, audience) if key and algorithm else None
        except (jwt.PyJWTError, ValueError, TypeError):
            return None

    def _header(self, token: str) -> tuple[str | None, str | None]:
        """Return a token's algorithm (``None`` if it is not allowed) and its key id (``None`` if it has none)."""
        header = jwt.get_unverified_header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        is_allowed = algorithm in self._settings.algorithms and "crit" not in header
        return algorithm if is_allowed else None, key_id if isinstance(key_id, str) else None

    def _checked(
        self, token: str, key: jwt.PyJWK, algorithm: str, audience: Collection[str]
    ) -> Mapping[str, Any] | None:
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            # The one that the key was chosen for: no other is tried, whatever the token says.
            algorithms=[algorithm],
            audience=list(audience),
            issuer=self._settings.issuer,
            leeway=self._settings.leeway_s,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
        # PyJWT (2.10) reads a text as a number.
        is_number = isinstance(claims["exp"], int | float) and not isinstance(claims["exp"], bool)
        return claims if is_number else None

    def _identity(self, claims: Mapping[str, Any]) -> Identity | None:
        subject = claims["sub"]
        groups = _groups(_claim(claims, self._settings.groups_claim))
        if not isinstance(subject, str) or not subject or len(subject) > MAX_NAME_CHARACTERS or groups is None:
            return None
        groups = frozenset(name for name in groups if not is_principal(name)) | self._accounts(claims)
        return Identity(f"{self._settings.issuer} {subject}", groups, min(float(claims["exp"]), time.time() + 86_400))

    def _accounts(self, claims: Mapping[str, Any]) -> set[str]:
        """Return the accounts that claims prove: the subject, and the address if it is verified."""
        if not self._names_accounts:
            return set()
        email, verified = _claim(claims, self._settings.email_claim), claims.get("email_verified")
        is_verified = verified is True or self._settings.email_verified == "always"
        is_usable = is_verified and isinstance(email, str) and "@" in email and len(email) <= MAX_NAME_CHARACTERS
        return {account("subject", claims["sub"]), *([account("email", str(email))] if is_usable else [])}


def _has_shape(token: str) -> bool:
    return token.count(".") == 2 and len(token) <= MAX_TOKEN_CHARACTERS


def _claim(claims: Mapping[str, Any], name: str) -> object:
    """Return the claim ``a.b``, or else the claim ``b`` inside the claim ``a``; ``None`` if both are missing."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def _groups(claim: object) -> frozenset[str] | None:
    """Read a claim of groups, which is a name or a list of names.

    Return no groups if the claim is missing, ``None`` if it has another shape.
    """
    if claim is None:
        return frozenset()
    names = [claim] if isinstance(claim, str) else claim
    if not isinstance(names, list) or len(names) > MAX_GROUPS or not all(isinstance(one, str) for one in names):
        return None
    # As written: " board" is not the group "board".
    return frozenset(group_name(name) for name in names if name and name == name.strip())


FETCH_WITHIN_S = 5.0
MAX_BYTES = 1 << 20
# A key that is not there may have come since; whoever makes up keys does not make us ask more often than this.
ASK_AGAIN_S = 10.0
# Keys that cannot be read again: a provider that is down keeps nobody out for so long.
OUTDATED_S = 86_400.0
DISCOVERY = "/.well-known/openid-configuration"
_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}


class UnreadableError(Exception):
    """The answer of a provider cannot be read."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key. ``algorithm`` is the algorithm that the key names; ``None`` if it names none."""

    jwk: jwt.PyJWK
    algorithm: object

    def fits(self, algorithm: str) -> bool:
        """Tell whether the key can check this algorithm. A key that names no algorithm fits every one of its kind."""
        return self.jwk.key_type == _KINDS[algorithm[:2]] and self.algorithm in {None, algorithm}


class SigningKeys:
    """A provider's keys by id. Every method may be called from any thread, and may wait for the network."""

    def __init__(self, settings: OidcSettings, *, now: Callable[[], float] = time.monotonic) -> None:
        """Store where the keys are. They are read when the first key is asked for.

        Args:
            now: the clock, in seconds.
        """
        self._settings = settings
        self._now = now
        self._lock = threading.Lock()
        self._keys: tuple[SigningKey, ...] = ()
        self._read_at: float | None = None
        self._tried_at: float | None = None

    def known(self, key_id: str | None, algorithm: str) -> SigningKey | None:
        """Return the key that a token names if the keys were read recently, else ``None``; never waits."""
        return self._find(key_id, algorithm) if self._age < self._settings.keys_fresh_s else None

    def usable(self, key_id: str | None, algorithm: str) -> SigningKey | None:
        """Return the key that a token names; ``None`` if the provider has no such key.

        If the token names no key, return the only key for its algorithm; ``None`` if there are several.

        Raises:
            ProblemError: 503, no keys could be read for a day.
        """
        if found := self.known(key_id, algorithm):
            return found
        with self._lock:
            if self.known(key_id, algorithm) is None:  # nobody has read them meanwhile
                self._refresh()
            if self._age >= max(OUTDATED_S, self._settings.keys_fresh_s):
                raise broken_access()
            return self._find(key_id, algorithm)

    @property
    def _age(self) -> float:
        return float("inf") if self._read_at is None else self._now() - self._read_at

    @property
    def _may_ask(self) -> bool:
        return self._tried_at is None or self._now() - self._tried_at >= ASK_AGAIN_S

    def _refresh(self) -> None:
        """Read the keys, unless that was tried a moment ago. If reading fails, the old keys stay."""
        if not self._may_ask:
            return
        self._tried_at = self._now()
        try:
            self._keys = _signing_keys(self._load())
            self._read_at = self._now()
        except (OSError, ValueError, UnreadableError, httpx.HTTPError, jwt.PyJWTError) as error:
            log.error("the keys of %s cannot be read: %s", self._settings.issuer, error)

    def _find(self, key_id: str | None, algorithm: str) -> SigningKey | None:
        fitting = [key for key in self._keys if key.fits(algorithm) and key_id in {None, key.jwk.key_id}]
        return fitting[0] if len(fitting) == 1 else None

    def _load(self) -> Mapping[str, Any]:
        place = self._settings.jwks or checked_address(
            str(fetch_description(self._settings.issuer).get("jwks_uri", ""))
        )
        return fetch_json(place) if is_web_address(place) else _parsed(Path(place).read_bytes()[: MAX_BYTES + 1])


def fetch_description(issuer: str) -> Mapping[str, Any]:
    """Fetch the provider's description of itself (OpenID Connect Discovery 1.0).

    Raises:
        UnreadableError: the description names another issuer. All errors of ``fetch_json`` are raised, too.
    """
    document = fetch_json(issuer.rstrip("/") + DISCOVERY)
    if document.get("issuer") != issuer:
        raise UnreadableError(f"the issuer calls itself {str(document.get('issuer'))[:200]!r}")
    return document


def fetch_json(
    address: str,
    form: Mapping[str, str] | None = None,
    credentials: tuple[str, str] | None = None,
    also: Collection[int] = (),
) -> Mapping[str, Any]:
    """Fetch a JSON object. Redirects are not followed; size and time are limited.

    Args:
        form: is posted if given; otherwise the request is a GET.
        credentials: name and password.
        also: further statuses beside 200 whose answer is returned.

    Raises:
        UnreadableError: the answer is not a JSON object, or has another status.
        httpx.HTTPError: there is no answer.
        ValueError: the answer is not JSON, or damaged.
    """
    end, content = time.monotonic() + FETCH_WITHIN_S, b""
    with httpx.stream(
        "GET" if form is None else "POST",
        address,
        data=form,
        auth=credentials,
        headers={**ACCEPTED, "Accept": "application/json"},
        timeout=FETCH_WITHIN_S,
        follow_redirects=False,
    ) as response:
        if response.status_code != httpx.codes.OK and response.status_code not in also:
            raise UnreadableError(f"{address} answers {response.status_code}")
        for piece in decoded(response.iter_raw(), response.headers.get("content-encoding", "")):
            content += piece
            if len(content) > MAX_BYTES:
                break
            if time.monotonic() > end:
                raise UnreadableError(f"{address} takes longer than {FETCH_WITHIN_S:g} s")
    return _parsed(content)


def _parsed(content: bytes) -> Mapping[str, Any]:
    if len(content) > MAX_BYTES:
        raise UnreadableError(f"more than {MAX_BYTES} bytes")
    try:
        loaded = json.loads(content)
    except RecursionError as error:
        raise UnreadableError("nested too deeply") from error
    if not isinstance(loaded, dict):
        raise UnreadableError("no JSON object")
    return loaded


def _signing_keys(document: Mapping[str, Any]) -> tuple[SigningKey, ...]:
    """Return the keys of a key set that can check signatures; keys for other purposes are left out."""
    stated = document.get("keys")
    if not isinstance(stated, list):
        raise UnreadableError("no key set: it has no list 'keys'")
    keys = []
    for one in stated:
        if not isinstance(one, dict) or one.get("kty") == "oct" or one.get("use", "sig") != "sig" or "d" in one:
            continue  # a shared or a private key is nobody's to hand out
        try:
            keys.append(SigningKey(jwt.PyJWK(one), one.get("alg")))
        except jwt.PyJWTError as error:
            log.info("a key is left out: %s", error)
    return tuple(keys)
