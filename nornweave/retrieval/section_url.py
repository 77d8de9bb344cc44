"""Add the section of a passage to the address of the page that it stands in."""

from __future__ import annotations

from urllib.parse import quote

from nornweave.types import ANCHOR, Metadata

# What RFC 3986 allows in a fragment.
_IN_FRAGMENT = "!$&'()*+,;=:@/?-._~%"


def section_url(url: str | None, metadata: Metadata) -> str | None:
    """Return the address that opens a passage's section, where its page names one.

    Args:
        url: of the document.
        metadata: of the chunk.
    """
    anchor = metadata.get(ANCHOR)
    if url is None or "#" in url or not isinstance(anchor, str) or not anchor:
        return url
    return f"{url}#{quote(anchor, safe=_IN_FRAGMENT)}"
