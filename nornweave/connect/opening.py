"""Open the source that an entry of ``sources:`` describes."""

from __future__ import annotations

from pathlib import Path

from nornweave.config import SourceSettings, SourceType
from nornweave.connect.exports.messages import MessagesSource
from nornweave.connect.exports.transcripts import TranscriptSource
from nornweave.connect.files.source import FilesSource, StackExchangeSource
from nornweave.connect.git.address import parse_address
from nornweave.connect.git.clone import Clone
from nornweave.connect.git.network import Network
from nornweave.connect.git.remote import RemoteGitSource
from nornweave.connect.git.source import GitSource
from nornweave.connect.git.watched import MEGABYTE
from nornweave.connect.github.export import GithubDumpSource
from nornweave.connect.inbox.source import InboxSource
from nornweave.connect.mirror.mirrored import MirroredSource
from nornweave.connect.mirror.opening import missing_token, open_feed
from nornweave.connect.protocol import Source
from nornweave.connect.slack.export import SlackSource
from nornweave.core.errors import ConfigError
from nornweave.core.types import SourceId


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
            ref, web_url = settings.ref, settings.web_url
            return GitSource(
                identity, settings.domain, root, include=include, exclude=exclude, ref=ref, web_url=web_url
            )
        case SourceType.INBOX:
            return InboxSource(identity, settings.domain, root)
        case SourceType.STACKEXCHANGE:
            return StackExchangeSource(identity, settings.domain, root, include=include, exclude=exclude)
        case _:
            return FilesSource(
                identity, settings.domain, root, include=include, exclude=exclude, metadata=settings.metadata
            )


def _open_remote(settings: SourceSettings, data_dir: Path) -> Source:
    if settings.type is SourceType.GIT:
        return _open_repository(settings, data_dir)
    return MirroredSource(
        SourceId(settings.id),
        open_feed(settings),
        data_dir / "remote",
        relist_s=settings.relist_hours * 3600,
        problem=missing_token(settings),
    )


def _open_repository(settings: SourceSettings, data_dir: Path) -> Source:
    if settings.submodules:
        raise ConfigError(
            f"sources[{settings.id}].submodules: submodules are not read; name each of them as a source of its own"
        )
    try:
        address = parse_address(settings.url or "")
        network = Network(address, hosts=settings.hosts, credentials_env=settings.credentials_env)
        return RemoteGitSource(
            SourceId(settings.id),
            settings.domain,
            Clone(data_dir, network, max_bytes=settings.max_megabytes * MEGABYTE),
            ref=settings.ref,
            include=settings.include,
            exclude=settings.exclude,
            web_url=settings.web_url,
        )
    except ConfigError as error:
        raise ConfigError(f"sources[{settings.id}]: {error}") from error


def _root(settings: SourceSettings) -> Path:
    if settings.path is None:
        raise ConfigError(f"sources[{settings.id}]: key 'path' is missing")
    return settings.path
