"""An identity provider on a real port: discovery, keys that can be rotated, tokens signed with real keys.

It signs people in as well: the authorization code flow with PKCE (RFC 7636), checked as strictly as a certified
provider does, with refresh tokens that rotate. Who comes is ``person``, without a question.
"""

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

AUDIENCE = "nornweave"
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


PEOPLE = ec_key()


def jwk_of(key: Key, key_id: str | None, **more: Any) -> dict[str, Any]:
    """Return the public half as a provider publishes it."""
    public = key.public_key()
    kinds = ((rsa.RSAPublicKey, RSAAlgorithm), (ec.EllipticCurvePublicKey, ECAlgorithm))
    algorithm = next((made for kind, made in kinds if isinstance(public, kind)), OKPAlgorithm)
    named = {} if key_id is None else {"kid": key_id}
    return {**json.loads(algorithm.to_jwk(public)), "use": "sig", **named, **more}


def pem_of(key: Key) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


CLIENT, SECRET = "nornweave web", "s3cret: 100%"
"""With characters that have to be escaped before they stand in a header."""


@dataclass
class Provider:
    """A provider; ``keys`` are what it publishes, ``asked`` how often it was asked for them.

    Attributes:
        person: claims of who signs in, beside those of every token.
        mints: what makes an ID token of its claims; ``None`` leaves it out.
        answers: replaces what it sends the browser back with.
        says: replaces what it says of itself; ``describes`` is the status of that alone.
        left: the sign-outs that it was asked for.
        slow_s: how long it waits before it answers anything.
        host: as it calls itself; by another name than that of the service it is another site for a browser.
    """

    keys: list[dict[str, Any]] = field(default_factory=list)
    asked: int = 0
    status: int = 200
    calls_itself: str | None = None
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "alice", "groups": ["board"]})
    mints: Callable[[dict[str, Any]], str | None] | None = None
    answers: dict[str, str | None] = field(default_factory=dict)
    says: dict[str, Any] = field(default_factory=dict)
    describes: int = 200
    gives_refresh: bool = False
    secret: str | None = SECRET
    left: list[dict[str, str]] = field(default_factory=list)
    authorized: list[dict[str, str]] = field(default_factory=list)
    redeemed: list[dict[str, str]] = field(default_factory=list)
    slow_s: float = 0.0
    host: str = "127.0.0.1"
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    refreshing: set[str] = field(default_factory=set)

    def __enter__(self) -> Self:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                time.sleep(provider.slow_s)
                parts = urlsplit(self.path)
                given = dict(parse_qsl(parts.query))
                if parts.path in {"/authorize", "/leave"}:
                    target = ""
                    if given:
                        target = provider.authorize(given) if parts.path == "/authorize" else provider.leave(given)
                    refused = 400 if provider.status == 200 else provider.status
                    self.send_response(302 if target else refused)
                    self.send_header("location", target or "")
                    self.send_header("content-length", "0")
                    self.end_headers()
                elif parts.path == "/realm/.well-known/openid-configuration":
                    self.send_json(provider.description, provider.describes)
                else:
                    provider.asked += 1
                    self.send_json({"keys": provider.keys})

            def do_POST(self) -> None:
                time.sleep(provider.slow_s)
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                shown = self.headers.get("authorization", "")
                answer = provider.redeem(dict(parse_qsl(body)), shown) if provider.status == 200 else {}
                self.send_json(answer, 400 if isinstance(answer, dict) and "error" in answer else 200)

            def send_json(self, document: Any, status: int = 200) -> None:
                body = json.dumps(document).encode()
                self.send_response(status if provider.status == 200 else provider.status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self._server.server_address[1]}"

    @property
    def issuer(self) -> str:
        return f"{self.address}/realm"

    @property
    def description(self) -> dict[str, Any]:
        """What it says of itself."""
        usual = {
            "issuer": self.calls_itself or self.issuer,
            "jwks_uri": f"{self.address}/keys",
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "end_session_endpoint": f"{self.address}/leave",
            "authorization_response_iss_parameter_supported": True,
        }
        return {name: value for name, value in {**usual, **self.says}.items() if value is not None}

    def authorize(self, given: dict[str, str]) -> str:
        """Return where the browser is sent with a code; nowhere if the request is not one of the client."""
        self.authorized.append(given)
        is_right = (given["client_id"], given["response_type"], given["code_challenge_method"]) == (
            CLIENT,
            "code",
            "S256",
        )
        if not is_right or not given["redirect_uri"].endswith("/callback") or "openid" not in given["scope"].split():
            return ""
        code = secrets.token_urlsafe(16)
        self.codes[code] = given
        answer = {"code": code, "state": given["state"], "iss": self.issuer, **self.answers}
        sent = {name: value for name, value in answer.items() if value is not None}
        return f"{given['redirect_uri']}?{urlencode(sent)}"

    def redeem(self, form: dict[str, str], header: str) -> dict[str, Any]:
        """Return tokens for a code or a refresh token, each once."""
        self.redeemed.append(form)
        if self.secret is not None:
            shown = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
            if tuple(map(unquote_plus, shown[::2])) != (CLIENT, self.secret):
                return {"error": "invalid_client"}
        elif form.get("client_id") != CLIENT:
            return {"error": "invalid_client"}
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refreshing:
                return {"error": "invalid_grant"}
            self.refreshing.remove(form["refresh_token"])
            return self._given(None)
        asked = self.codes.pop(form["code"], None)
        challenge = _encoded(hashlib.sha256(form["code_verifier"].encode()).digest())
        if not asked or asked["redirect_uri"] != form["redirect_uri"] or asked["code_challenge"] != challenge:
            return {"error": "invalid_grant"}
        return self._given(asked["nonce"])

    def _given(self, nonce: str | None) -> dict[str, Any]:
        claims = self.claims(**{"aud": CLIENT, "nonce": nonce, **self.person})
        given = {"access_token": "opaque", "token_type": "Bearer", "id_token": (self.mints or self.signed)(claims)}
        if self.gives_refresh:
            given["refresh_token"] = secrets.token_urlsafe(16)
            self.refreshing.add(given["refresh_token"])
        return {name: value for name, value in given.items() if value is not None}

    def signed(self, claims: dict[str, Any]) -> str:
        """Return claims signed with the key of people."""
        return jwt.encode(claims, PEOPLE, algorithm="ES256", headers={"kid": "people"})

    def leave(self, given: dict[str, str]) -> str:
        """Return where the browser is sent after it signed out."""
        self.left.append(given)
        return given["post_logout_redirect_uri"]

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Return the claims of a valid token; ``None`` leaves one out."""
        now = int(time.time())
        usual = {"iss": self.issuer, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 300, "groups": ["board"]}
        return {name: value for name, value in {**usual, **changed}.items() if value is not None}

    def token(self, key: Key, algorithm: str, key_id: str | None = "one", **changed: Any) -> str:
        headers = {} if key_id is None else {"kid": key_id}
        return jwt.encode(self.claims(**changed), key, algorithm=algorithm, headers=headers)


def forged(header: dict[str, Any], claims: dict[str, Any], secret: bytes | None) -> str:
    """Return a token signed with HMAC, or not at all: what no library would make."""
    parts = [_encoded(json.dumps(part).encode()) for part in (header, claims)]
    signature = b"" if secret is None else hmac.new(secret, ".".join(parts).encode(), hashlib.sha256).digest()
    return ".".join([*parts, _encoded(signature)])


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
