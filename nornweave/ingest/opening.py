"""One entry of ``sources:`` → the source that it describes."""

from __future__ import annotations

import os
from pathlib import Path

from nornweave.errors import ConfigError
from nornweave.ingest.files import FilesSource
from nornweave.ingest.git import GitSource
from nornweave.ingest.github import GithubDumpSource
from nornweave.ingest.github_api import GithubApiSource
from nornweave.ingest.inbox import InboxSource
from nornweave.ingest.messages import MessagesSource
from nornweave.ingest.slack import SlackSource
from nornweave.ingest.source import Source
from nornweave.ingest.transcripts import TranscriptSource
from nornweave.settings import SourceSettings, SourceType
from nornweave.types import SourceId

_CONVERSATIONS = {
    SourceType.SLACK: SlackSource,
    SourceType.TRANSCRIPTS: TranscriptSource,
    SourceType.MESSAGES: MessagesSource,
}


def open_source(settings: SourceSettings) -> Source:
    """Return the source; nothing is read yet.

    Raises:
        ConfigError: a key that the type needs is missing.
    """
    identity = SourceId(settings.id)
    if settings.type is SourceType.GITHUB and settings.repository:
        return GithubApiSource(
            identity, settings.repository, api_url=settings.api_url, token=os.environ.get("GITHUB_TOKEN")
        )
    root = _root(settings)
    filters = {"include": settings.include, "exclude": settings.exclude}
    if settings.type in _CONVERSATIONS:
        return _CONVERSATIONS[settings.type](identity, root, **filters)
    match settings.type:
        case SourceType.GITHUB:
            return GithubDumpSource(identity, root, **filters)
        case SourceType.GIT:
            return GitSource(identity, settings.domain, root, ref=settings.ref, **filters)
        case SourceType.INBOX:
            return InboxSource(identity, settings.domain, root)
        case SourceType.STACKEXCHANGE:
            include = settings.include or ("**/*.json",)
            return FilesSource(identity, settings.domain, root, include=include, exclude=settings.exclude)
        case _:
            return FilesSource(identity, settings.domain, root, metadata=settings.metadata, **filters)


def _root(settings: SourceSettings) -> Path:
    if settings.path is None:
        raise ConfigError(f"sources[{settings.id}]: key 'path' is missing")
    return settings.path
