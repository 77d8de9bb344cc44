"""What stands in an object store beside the files: manifests and the pointers to them, as validated JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from nornweave.carry.object_store import PART_BYTES, ObjectStore
from nornweave.core.errors import PublicationError, SignatureError
from nornweave.core.signatures import Signer, check_signed, own_keys, read_signed
from nornweave.core.types import Domain, GenerationId

FORMAT = 1

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ObjectKey = Annotated[str, StringConstraints(pattern=r"^objects/sha256/[0-9a-f]{64}(-[0-9a-f]{8})?$")]
ManifestKey = Annotated[str, StringConstraints(pattern=r"^domains/[a-z]+/manifests/gen-\d{6,12}-[0-9a-f]{12}\.json$")]
# What follows the generation's name in a file's, as in `.duckdb`, or the whole name of a segment.
Suffix = Annotated[
    str,
    StringConstraints(
        pattern=r"^(\.[A-Za-z0-9_-][A-Za-z0-9_.-]{0,100}|gen-\d{6,12}-\d{3}\.duckdb(\.crc32|\.arrays)?)$"
    ),
]
PublisherId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]


class ManifestDocument(BaseModel):
    """A document of the store; keys of later versions are left out.

    Attributes:
        signed_by: the public key of its publisher; empty where an earlier version wrote it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    signed_by: str = ""


D = TypeVar("D", bound=ManifestDocument)


class FileEntry(ManifestDocument):
    """A file of a generation.

    Attributes:
        suffix: its name, without the name of the generation that it begins with; a segment, which several generations
            can share, has its whole name.
        key: of the object that holds it.
        size: in bytes.
        sha256: of all of it.
        part_size: bytes of each part but the last.
        parts: SHA-256 of each part, so that a damaged one is read again alone and a broken download goes on.
    """

    suffix: Suffix
    key: ObjectKey
    size: int = Field(ge=0, le=1 << 44)
    sha256: Sha256
    part_size: int = Field(PART_BYTES, ge=1 << 10, le=1 << 30)
    parts: tuple[Sha256, ...]

    def name_in(self, generation: GenerationId) -> str:
        """Return its name in the folder of the generations."""
        return self.suffix if is_segment(self.suffix) else f"{generation}{self.suffix}"

    def has_all_parts(self) -> bool:
        """Tell whether the parts add up to the size."""
        return len(self.parts) == -(-self.size // self.part_size)


def is_segment(suffix: str) -> bool:
    """Tell whether a file of this name belongs to a segment."""
    return not suffix.startswith(".")


class PublishedManifest(ManifestDocument):
    """One generation of a domain, complete.

    Attributes:
        number: by which replicas know it; grows with every publication, also with one of an older generation.
        built_as: the name that the publisher's disk has it under.
        facts: how it was built: schema, encoder, analyzer, filters, …
        statistics: of BM25 over the whole domain: chunks, documents, and the total length of each field.
        document_frequencies: where the frequency of each term stands.
        previous: key of the manifest that this one replaced.
    """

    format: int = Field(FORMAT, ge=FORMAT, le=FORMAT)
    domain: Domain
    number: int = Field(ge=1, lt=10**12)
    built_as: str
    files: tuple[FileEntry, ...] = Field(min_length=1, max_length=10_000)
    facts: Mapping[str, str]
    statistics: Mapping[str, int]
    document_frequencies: str = "array 'terms' beside each file"
    previous: ManifestKey | None
    publisher: PublisherId
    published_at: str

    @property
    def generation(self) -> GenerationId:
        """Return the name that replicas have it under."""
        return GenerationId(f"gen-{self.number:06d}")


class Pointer(ManifestDocument):
    """Names the manifest that counts."""

    format: int = Field(FORMAT, ge=FORMAT, le=FORMAT)
    domain: Domain
    number: int = Field(ge=1, lt=10**12)
    manifest: ManifestKey
    sha256: Sha256
    publisher: PublisherId
    published_at: str
    oldest: int = 0
    """Older generations must not be served any more: replicas remove them."""


def pointer_key(domain: Domain) -> str:
    """Return where the pointer of a domain stands."""
    return f"domains/{domain.value}/CURRENT"


def manifest_key(manifest: PublishedManifest, content: bytes) -> str:
    """Return where a manifest stands: two publishers' of the same number are two."""
    return f"domains/{manifest.domain.value}/manifests/{manifest.generation}-{digest_of(content)[:12]}.json"


def object_key(sha256: str, mark: str = "") -> str:
    """Return where a file stands; ``mark`` tells it from an object that may be about to be removed."""
    return f"objects/sha256/{sha256}" + (f"-{mark}" if mark else "")


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of a document."""
    return hashlib.sha256(content).hexdigest()


def to_json(document: ManifestDocument, signer: Signer) -> bytes:
    """Return a document as it is stored: signed."""
    return json.dumps(signer.signed(document.model_dump(mode="json")), ensure_ascii=False, indent=1).encode() + b"\n"


def is_signed(document: ManifestDocument, data_dir: Path) -> bool:
    """Tell whether a document is signed with a key that was not retired here; another machine's is its own matter."""
    return document.signed_by not in {"", *own_keys(data_dir)[1:]}


def read_document(store: ObjectStore, kind: type[D], key: str) -> D:
    """Return a document of the store.

    Raises:
        MissingObjectError: there is none.
        PublicationError: the store cannot be reached, or the document is damaged or of another format.
    """
    stored = store.read(key)
    assert stored is not None
    return read_json(kind, stored.content, f"{store.url}/{key}")


def read_json(kind: type[D], content: bytes, where: str, keys: Collection[str] = ()) -> D:
    """Read a document.

    Args:
        kind: of the document.
        content: as it was stored.
        where: it was, for messages.
        keys: the public keys of which one must have signed it; none: it is believed.

    Raises:
        PublicationError: it is damaged or of another format, or none of these keys has signed it.
    """
    try:
        document = kind.model_validate_json(content)
        if keys:
            check_signed(read_signed(content), keys)
    except SignatureError as error:
        raise PublicationError(
            f"{where}: {error}; `nornweave key` where it is published prints the key for 'publish.public_keys' here"
        ) from error
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, problem["loc"])) or "the whole"
        raise PublicationError(f"{where}: is damaged or of another version: {place}: {problem['msg']}") from error
    except ValueError as error:
        raise PublicationError(f"{where}: is damaged: {error}") from error
    return document
