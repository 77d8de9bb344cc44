"""Settings of the sources of documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from nornweave.config.base import FrozenSettings
from nornweave.core.types import Domain


class SourceType(StrEnum):
    """The kinds of source."""

    FILES = "files"
    GIT = "git"
    WEB = "web"
    SLACK = "slack"
    GITHUB = "github"
    CONFLUENCE = "confluence"
    JIRA = "jira"
    TRANSCRIPTS = "transcripts"
    MESSAGES = "messages"
    STACKEXCHANGE = "stackexchange"
    INBOX = "inbox"


# What a domain may be fed with. Conversations are messages, which plain files do not have.
ALLOWED_TYPES: Mapping[Domain, frozenset[SourceType]] = {
    Domain.CODE: frozenset({SourceType.FILES, SourceType.GIT, SourceType.INBOX}),
    Domain.DOCUMENTATION: frozenset(
        {SourceType.FILES, SourceType.GIT, SourceType.WEB, SourceType.CONFLUENCE, SourceType.INBOX}
    ),
    Domain.CONVERSATIONS: frozenset(
        {
            SourceType.SLACK,
            SourceType.GITHUB,
            SourceType.JIRA,
            SourceType.TRANSCRIPTS,
            SourceType.MESSAGES,
            SourceType.INBOX,
        }
    ),
    Domain.RESEARCH: frozenset(
        {SourceType.FILES, SourceType.GIT, SourceType.WEB, SourceType.STACKEXCHANGE, SourceType.INBOX}
    ),
}

# Keys that only some types have.
TYPES_OF_KEY: Mapping[str, frozenset[SourceType]] = {
    "metadata": frozenset({SourceType.FILES}),
    "url": frozenset({SourceType.GIT, SourceType.WEB, SourceType.CONFLUENCE, SourceType.JIRA}),
    "ref": frozenset({SourceType.GIT}),
    "web_url": frozenset({SourceType.GIT}),
    "credentials_env": frozenset({SourceType.GIT}),
    "submodules": frozenset({SourceType.GIT}),
    "hosts": frozenset({SourceType.GIT, SourceType.WEB}),
    "max_megabytes": frozenset({SourceType.GIT}),
    "prefix": frozenset({SourceType.WEB}),
    "max_pages": frozenset({SourceType.WEB}),
    "repository": frozenset({SourceType.GITHUB}),
    "site": frozenset({SourceType.STACKEXCHANGE}),
    "tags": frozenset({SourceType.STACKEXCHANGE}),
    "channels": frozenset({SourceType.SLACK}),
    "spaces": frozenset({SourceType.CONFLUENCE}),
    "projects": frozenset({SourceType.JIRA}),
    "user": frozenset({SourceType.CONFLUENCE, SourceType.JIRA}),
    "token_env": frozenset(
        {SourceType.SLACK, SourceType.GITHUB, SourceType.STACKEXCHANGE, SourceType.CONFLUENCE, SourceType.JIRA}
    ),
    "api_url": frozenset({SourceType.SLACK, SourceType.GITHUB, SourceType.STACKEXCHANGE}),
}
# The key that makes a source of this type a remote one; without it, it reads ``path``.
REMOTE_KEY: Mapping[SourceType, str] = {
    SourceType.GIT: "url",
    SourceType.WEB: "url",
    SourceType.CONFLUENCE: "url",
    SourceType.JIRA: "url",
    SourceType.GITHUB: "repository",
    SourceType.STACKEXCHANGE: "site",
    SourceType.SLACK: "token_env",
}
_ONLY_REMOTE = frozenset({SourceType.WEB, SourceType.CONFLUENCE, SourceType.JIRA})

# A user and a password before the host.
_PASSWORD = re.compile(r"[a-z+]+://[^/@]*:[^/@]*@", re.I)

EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class SourceSettings(FrozenSettings):
    """One entry of ``sources:``. Secrets are never here, only the names of the environment variables that hold them."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$", max_length=64)]
    domain: Domain
    type: SourceType
    path: Path | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    access: tuple[Name, ...] = ()
    """Groups that may see the source's documents; empty: everybody who may ask."""
    metadata: Path | None = None
    """A YAML or JSON file with dates, revisions and the like per path."""
    url: str | None = None
    """Where the source lives: a repository, the first page of a site, a Confluence or Jira site."""
    ref: str = "HEAD"
    """The branch, tag or commit that is read."""
    web_url: str | None = None
    """Where people read a file in a browser, with ``{commit}`` and ``{path}``; of well-known hosts it is known."""
    credentials_env: EnvironmentName | None = None
    """The environment variable with a password or token for ``url``."""
    submodules: bool = False
    hosts: tuple[Name, ...] = ()
    """Further hosts that ``url`` may lead to."""
    max_megabytes: int = Field(2_000, ge=1, le=1_000_000)
    """The largest clone."""
    prefix: str | None = None
    """Only pages whose address starts so; the folder of ``url`` unless given."""
    max_pages: int = Field(5_000, ge=1, le=200_000)
    repository: Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")] | None = None
    """``owner/name``: read GitHub through its API instead of a dump."""
    site: Annotated[str, StringConstraints(pattern=r"^[\w.-]+$", max_length=100)] | None = None
    """A site of Stack Exchange, such as ``stackoverflow``: read it through its API instead of a dump."""
    tags: tuple[Name, ...] = ()
    """Questions with any of these."""
    channels: tuple[Name, ...] = ()
    """Names or ids; empty: every channel that the token's owner has joined."""
    spaces: tuple[Name, ...] = ()
    """Keys of spaces; empty: every space that the user may read."""
    projects: tuple[Name, ...] = ()
    """Keys of projects; empty: every project that the user may read."""
    user: Name | None = None
    """The account, an e-mail address, that the token belongs to; without one it is sent as a bearer token."""
    token_env: EnvironmentName | None = None
    """The environment variable that holds the token; of GitHub ``GITHUB_TOKEN`` unless given."""
    api_url: str | None = None
    """Of an enterprise server; the public service unless given."""
    relist_hours: float = Field(24.0, gt=0, le=8_760)
    """A remote source lists everything again after so many hours, to find what was deleted."""

    @property
    def is_remote(self) -> bool:
        """Tell whether reading it needs the network."""
        key = REMOTE_KEY.get(self.type)
        return key is not None and getattr(self, key) is not None

    @model_validator(mode="after")
    def _is_complete(self) -> SourceSettings:
        if self.type not in ALLOWED_TYPES[self.domain]:
            allowed = ", ".join(sorted(ALLOWED_TYPES[self.domain]))
            message = f"type {self.type.value!r} does not fit domain {self.domain.value!r}; allowed: {allowed}"
            raise ValueError(message)
        for key in sorted(self.model_fields_set & TYPES_OF_KEY.keys()):
            if self.type not in TYPES_OF_KEY[key]:
                belongs = ", ".join(sorted(TYPES_OF_KEY[key]))
                message = f"key {key!r} belongs to type {belongs}, not {self.type.value}"
                raise ValueError(message)
        self._check_place()
        if self.url is not None and _PASSWORD.match(self.url):
            message = "key 'url' holds a password; name the environment variable that has it (its value is not shown)"
            raise ValueError(message)
        return self

    def _check_place(self) -> None:
        remote = REMOTE_KEY.get(self.type)
        if self.path is None and not self.is_remote:
            keys = f"{remote!r}" if self.type in _ONLY_REMOTE else f"'path' or {remote!r}" if remote else "'path'"
            message = f"key {keys} is missing"
            raise ValueError(message)
        if self.path is not None and self.is_remote:
            message = f"keys 'path' and {remote!r} exclude each other; a source is local or remote"
            raise ValueError(message)
