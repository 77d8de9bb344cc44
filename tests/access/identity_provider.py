"""An identity provider on a real port: discovery, keys that can be rotated, tokens signed with real keys."""

import base64
import hashlib
import hmac
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

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


def jwk_of(key: Key, key_id: str | None, **more: Any) -> dict[str, Any]:
    """Return the public half as a provider publishes it."""
    public = key.public_key()
    kinds = ((rsa.RSAPublicKey, RSAAlgorithm), (ec.EllipticCurvePublicKey, ECAlgorithm))
    algorithm = next((made for kind, made in kinds if isinstance(public, kind)), OKPAlgorithm)
    named = {} if key_id is None else {"kid": key_id}
    return {**json.loads(algorithm.to_jwk(public)), "use": "sig", **named, **more}


def pem_of(key: Key) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@dataclass
class Provider:
    """A provider; ``keys`` are what it publishes, ``asked`` how often it was asked for them."""

    keys: list[dict[str, Any]] = field(default_factory=list)
    asked: int = 0
    status: int = 200
    calls_itself: str | None = None

    def __enter__(self) -> Self:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/realm/.well-known/openid-configuration":
                    issuer = provider.calls_itself or provider.issuer
                    document: Any = {"issuer": issuer, "jwks_uri": f"{provider.address}/keys"}
                else:
                    provider.asked += 1
                    document = {"keys": provider.keys}
                body = json.dumps(document).encode()
                self.send_response(provider.status)
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
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def issuer(self) -> str:
        return f"{self.address}/realm"

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
