"""The parts of a deletion receipt: the document, the places that were searched for it, the receipt.

A place searches, and removes what it found if it can do without a sync. Implementations lie beside what they search;
``nornweave.cli.receipt_places`` has the table of them all.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nornweave.core.errors import ConfigError
from nornweave.core.files.writing import write_whole
from nornweave.core.signatures import Signer, read_signed
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Domain, document_id, present

FOLDER = "receipts"
MOST_PASSAGES = 24
_ID = re.compile(r"[0-9a-f]{24}")
# Characters that every format stores unchanged: no quotes, backslashes or line ends.
_LEAST = 20
_PIECE = 1 << 20
_PASSAGE = re.compile(r"\w[\w .,:;=/()+-]{10,58}\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The document that was deleted.

    Attributes:
        passages: parts of the text that no other document has, as bytes; empty if the text is not known any more.
        is_quoted_in: tells whether a question quotes the text of this document and of no other.
    """

    domain: Domain
    source_id: str
    path: str
    passages: tuple[bytes, ...] = ()
    is_quoted_in: Callable[[str], bool] = lambda _: False

    @property
    def document_id(self) -> str:
        """The document's id in the index."""
        return document_id(self.source_id, self.path)

    @property
    def name(self) -> str:
        """The document's name in events."""
        return f"{self.source_id}/{self.path}"

    def is_in(self, content: bytes) -> bool:
        """Tell whether bytes hold one of the document's passages."""
        return any(passage in content for passage in self.passages)

    def is_in_file(self, file: Path) -> bool:
        """Tell whether a file holds one of the document's passages; ``False`` if it cannot be read."""
        before, longest = b"", max(map(len, self.passages), default=0)
        with suppress(OSError), file.open("rb") as stream:
            while longest and (piece := stream.read(_PIECE)):
                if self.is_in(before + piece):
                    return True
                before = piece[-longest:]
        return False


@dataclass(frozen=True, slots=True)
class Search:
    """The result of searching one place.

    Attributes:
        found: the number of rows, files or records that still hold a part of the document.
        through: a description of what was searched, for people.
        left: the first places that still hold a part of the document.
    """

    found: int
    through: str
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place where a part of a deleted document can remain.

    Attributes:
        search: searches the place and changes nothing.
        purge: removes what ``search`` finds; ``None`` if only a sync or a person may remove it.
        remedy: text for people: how to remove what ``search`` finds.
    """

    name: str
    search: Callable[[Deleted], Search]
    purge: Callable[[Deleted], None] | None = None
    remedy: str = "`nornweave receipt --purge` removes it"


def look(place: Place, deleted: Deleted) -> dict[str, Any]:
    """Search a place and return its entry in the receipt."""
    search = place.search(deleted)
    said = {"place": place.name, "looked_at": utc_text(present(), "seconds"), "through": search.through}
    left = {"left": list(search.left), "remedy": place.remedy} if search.found else {}
    return {**said, "found": search.found, **left}


def signed_receipt(deleted: Deleted, places: Sequence[Mapping[str, Any]], signer: Signer, *, purged: bool) -> Any:
    """Return the signed receipt of a deletion. ``places`` are the entries that ``look`` returned."""
    return signer.signed(
        {
            "id": secrets.token_hex(12),
            "domain": deleted.domain.value,
            "source_id": deleted.source_id,
            "source_path": deleted.path,
            "document_id": deleted.document_id,
            "passages": len(deleted.passages),
            "purged": purged,
            "gone": not any(place["found"] for place in places),
            "places": list(places),
            "signed_at": utc_text(present(), "seconds"),
        }
    )


def store_receipt(data_dir: Path, receipt: Mapping[str, Any]) -> Path:
    """Store a receipt. Return its file."""
    folder = data_dir / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"{receipt['id']}.json"
    write_whole(file, json.dumps(receipt, ensure_ascii=False, indent=1) + "\n")
    return file


def stored_receipt(data_dir: Path, receipt_id: str) -> Mapping[str, Any] | None:
    """Return the stored receipt with an id; ``None`` if there is none."""
    if not _ID.fullmatch(receipt_id):
        return None
    file = data_dir / FOLDER / f"{receipt_id}.json"
    return read_receipt(file) if file.is_file() else None


def read_receipt(file: Path) -> Mapping[str, Any]:
    """Read a receipt from a file.

    Raises:
        ConfigError: the file cannot be read, is not a JSON object, or has a key twice.
    """
    try:
        return read_signed(file.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: is not a receipt: {error}") from error


def passages_of(texts: Collection[str], is_elsewhere: Callable[[str], bool]) -> tuple[bytes, ...]:
    """Return passages that no other document has, spread evenly over the texts of a document.

    Args:
        is_elsewhere: tells whether another document has a passage, too.
    """
    matches = dict.fromkeys(match for text in texts for match in _PASSAGE.findall(text))
    candidates = [match for match in matches if not match.isascii() or (len(match) >= _LEAST and " " in match)]
    step = max(1, len(candidates) // (2 * MOST_PASSAGES))
    chosen = (passage for passage in candidates[::step] if not is_elsewhere(passage))
    return tuple(passage.encode() for passage, _ in zip(chosen, range(MOST_PASSAGES), strict=False))
