"""Sign JSON documents with Ed25519: receipts of deletions, confirmations, and what is published to object storage.

The key is made once a workspace::

    data_dir/keys/
      signing.pem  signs; only this user can read it
      next.pem     made by ``nornweave key --next``, signs after ``nornweave key --rotate``
      retired      public keys that signed before, one a line
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from nornweave.core.errors import ConfigError, SignatureError
from nornweave.core.files.writing import write_new, write_whole

PREFIX = "ed25519:"
FOLDER, SIGNING, NEXT, RETIRED = "keys", "signing.pem", "next.pem", "retired"


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key."""

    key: Ed25519PrivateKey

    @property
    def public_key(self) -> str:
        """Return the public key in one line."""
        return PREFIX + base64.b64encode(self.key.public_key().public_bytes_raw()).decode()

    def signed(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a document with two more keys: ``signed_by`` (the public key) and ``signature``."""
        whole = {**document, "signed_by": self.public_key}
        return {**whole, "signature": base64.b64encode(self.key.sign(signed_bytes(whole))).decode()}


def signed_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the bytes to sign: compact JSON with sorted keys, in UTF-8, of the document without ``signature``."""
    unsigned = {name: value for name, value in document.items() if name != "signature"}
    return json.dumps(unsigned, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def read_signed(content: str | bytes) -> dict[str, Any]:
    """Parse a signed document. The signature is not checked.

    Raises:
        ValueError: it is not a JSON object, is nested too deeply, or has a key twice, which parsers read differently.
    """
    try:
        document = json.loads(content, object_pairs_hook=_each_once)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(document, dict):
        raise ValueError("expected a JSON object")  # noqa: TRY004 - as of other bad documents
    return document


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {repeated[:80]!r} stands twice")
    return members


def check_signed(document: Mapping[str, Any], keys: Collection[str]) -> None:
    """Check that one of these public keys signed a document.

    Raises:
        SignatureError: none of the keys signed it, or the document was changed after it was signed.
    """
    signer, signature = document.get("signed_by"), document.get("signature")
    if not isinstance(signer, str) or not isinstance(signature, str):
        raise SignatureError("it is not signed")
    if signer not in keys:
        raise SignatureError(f"it is signed by {signer[:80]!r}, which is not one of the keys that are trusted here")
    try:
        public_key(signer).verify(base64.b64decode(signature, validate=True), signed_bytes(document))
    except (InvalidSignature, ValueError, RecursionError) as error:
        raise SignatureError("its signature is not valid: it was changed after it was signed") from error


def public_key(text: str) -> Ed25519PublicKey:
    """Read a public key.

    Raises:
        ValueError: it is invalid.
    """
    try:
        return Ed25519PublicKey.from_public_bytes(base64.b64decode(text.removeprefix(PREFIX), validate=True))
    except (ValueError, binascii.Error) as error:
        message = "expected a public key as `nornweave key` prints it, such as ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiM="
        raise ValueError(message) from error


def signer_of(data_dir: Path, name: str = SIGNING) -> Signer:
    """Return the signing key of a workspace; create it if it is missing.

    Raises:
        ConfigError: the key cannot be read or written, or other users can read it.
    """
    file = data_dir / FOLDER / name
    try:
        if not file.exists():
            _make(file)
        if file.stat().st_mode & 0o077:
            raise ConfigError(f"{file}: other users can read this key; make a new one (`nornweave key --next`)")
        key = load_pem_private_key(file.read_bytes(), password=None)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: the key that signs cannot be read or written: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"{file}: is not an Ed25519 key")
    return Signer(key)


def own_keys(data_dir: Path) -> tuple[str, ...]:
    """Return the public keys of a workspace: first the current key, then retired keys, newest first."""
    try:
        retired = (data_dir / FOLDER / RETIRED).read_text(encoding="ascii").split()
    except FileNotFoundError:
        retired = []
    return (signer_of(data_dir).public_key, *reversed(retired))


def rotate(data_dir: Path) -> Signer:
    """Make the next key the signing key and return it. Only the public key of the old signing key is kept.

    Raises:
        ConfigError: there is no next key.
    """
    folder = data_dir / FOLDER
    if not (folder / NEXT).exists():
        raise ConfigError(f"{folder}: no next key; make it with `nornweave key --next` and make it known to replicas")
    before = own_keys(data_dir)
    write_whole(folder / RETIRED, "".join(f"{key}\n" for key in reversed(before)))
    (folder / NEXT).replace(folder / SIGNING)
    return signer_of(data_dir)


def _make(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = Ed25519PrivateKey.generate()
    write_new(file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
