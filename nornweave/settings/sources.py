"""Settings of the sources of documents."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints, model_validator

from nornweave.settings.base import FrozenSettings
from nornweave.types import Domain


class SourceType(StrEnum):
    """The kinds of source."""

    FILES = "files"
    GIT = "git"
    SLACK = "slack"
    GITHUB = "github"
    TRANSCRIPTS = "transcripts"
    MESSAGES = "messages"
    STACKEXCHANGE = "stackexchange"
    INBOX = "inbox"


# What a domain may be fed with. Conversations are messages, which plain files do not have.
ALLOWED_TYPES: Mapping[Domain, frozenset[SourceType]] = {
    Domain.CODE: frozenset({SourceType.FILES, SourceType.GIT, SourceType.INBOX}),
    Domain.DOCUMENTATION: frozenset({SourceType.FILES, SourceType.GIT, SourceType.INBOX}),
    Domain.CONVERSATIONS: frozenset(
        {SourceType.SLACK, SourceType.GITHUB, SourceType.TRANSCRIPTS, SourceType.MESSAGES, SourceType.INBOX}
    ),
    Domain.RESEARCH: frozenset({SourceType.FILES, SourceType.GIT, SourceType.STACKEXCHANGE, SourceType.INBOX}),
}


class SourceSettings(FrozenSettings):
    """One entry of ``sources:``."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$", max_length=64)]
    domain: Domain
    type: SourceType
    path: Path | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    metadata: Path | None = None
    """A YAML or JSON file with dates, revisions and the like per path (``files`` only)."""
    ref: str = "HEAD"
    """What to read of a git repository."""
    repository: Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")] | None = None
    """``owner/name``: read GitHub through its API instead of a dump; the token comes from ``GITHUB_TOKEN``."""
    api_url: str = "https://api.github.com"

    @model_validator(mode="after")
    def _is_complete(self) -> SourceSettings:
        if self.type not in ALLOWED_TYPES[self.domain]:
            allowed = ", ".join(sorted(ALLOWED_TYPES[self.domain]))
            message = f"type {self.type.value!r} does not fit domain {self.domain.value!r}; allowed: {allowed}"
            raise ValueError(message)
        if self.repository and self.type is not SourceType.GITHUB:
            message = f"key 'repository' belongs to type github, not {self.type.value}"
            raise ValueError(message)
        if self.path is None and not self.repository:
            message = "key 'path' is missing"
            raise ValueError(message)
        return self
