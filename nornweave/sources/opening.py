"""Open the source that an entry of ``sources:`` describes."""

from __future__ import annotations

import os
from pathlib import Path

from nornweave.errors import ConfigError
from nornweave.settings import SourceSettings, SourceType
from nornweave.sources.files import FilesSource, StackExchangeSource
from nornweave.sources.git.source import GitSource
from nornweave.sources.github import GithubDumpSource
from nornweave.sources.inbox import InboxSource
from nornweave.sources.messages import MessagesSource
from nornweave.sources.protocol import Source
from nornweave.sources.remote.feed import Feed
from nornweave.sources.remote.github import PUBLIC_API, GithubFeed
from nornweave.sources.remote.mirrored import MirroredSource
from nornweave.sources.remote.web import WebFeed
from nornweave.sources.slack import SlackSource
from nornweave.sources.transcripts import TranscriptSource
from nornweave.types import SourceId


def open_source(settings: SourceSettings, data_dir: Path) -> Source:
    """Return the source; nothing is read yet.

    Args:
        settings: of the source.
        data_dir: of the workspace; remote sources keep there what they have read.

    Raises:
        ConfigError: a key that the type needs is missing.
    """
    identity = SourceId(settings.id)
    if settings.is_remote:
        return _open_remote(settings, data_dir)
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
        case _:
            return FilesSource(
                identity, settings.domain, root, include=include, exclude=exclude, metadata=settings.metadata
            )


def _open_remote(settings: SourceSettings, data_dir: Path) -> Source:
    folder = data_dir / "remote"
    return MirroredSource(SourceId(settings.id), _feed(settings), folder, relist_s=settings.relist_hours * 3600)


def _feed(settings: SourceSettings) -> Feed:
    match settings.type:
        case SourceType.GITHUB:
            name = settings.token_env or "GITHUB_TOKEN"
            return GithubFeed(
                settings.repository or "",
                api_url=settings.api_url or PUBLIC_API,
                token=os.environ.get(name),
                token_name=name,
            )
        case SourceType.WEB:
            return WebFeed(
                settings.url or "",
                domain=settings.domain,
                prefix=settings.prefix,
                hosts=settings.hosts,
                max_pages=settings.max_pages,
                include=settings.include,
                exclude=settings.exclude,
            )
        case _:
            raise ConfigError(f"sources[{settings.id}]: type {settings.type.value} cannot be read over the network")


def _root(settings: SourceSettings) -> Path:
    if settings.path is None:
        raise ConfigError(f"sources[{settings.id}]: key 'path' is missing")
    return settings.path
