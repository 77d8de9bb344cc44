"""One entry of ``sources:`` → the source that it describes."""

from __future__ import annotations

import os
from pathlib import Path

from nornweave.errors import ConfigError
from nornweave.ingest.files import FilesSource, StackExchangeSource
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
    root, include, exclude = _root(settings), settings.include, settings.exclude
    match settings.type:
        case SourceType.SLACK:
            return SlackSource(identity, root, include=include, exclude=exclude)
        case SourceType.TRANSCRIPTS:
            return TranscriptSource(identity, root, include=include, exclude=exclude)
        case SourceType.MESSAGES:
            return MessagesSource(identity, root, include=include, exclude=exclude)
        case SourceType.GITHUB:
            return GithubDumpSource(identity, root, include=include, exclude=exclude)
        case SourceType.GIT:
            return GitSource(identity, settings.domain, root, include=include, exclude=exclude, ref=settings.ref)
        case SourceType.INBOX:
            return InboxSource(identity, settings.domain, root)
        case SourceType.STACKEXCHANGE:
            return StackExchangeSource(identity, settings.domain, root, include=include, exclude=exclude)
        case SourceType.FILES:
            return FilesSource(
                identity, settings.domain, root, include=include, exclude=exclude, metadata=settings.metadata
            )


def _root(settings: SourceSettings) -> Path:
    if settings.path is None:
        raise ConfigError(f"sources[{settings.id}]: key 'path' is missing")
    return settings.path
