"""The table of the kinds of source. A new kind is a folder beside this file, and a line in ``CONNECTORS``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nornweave.config import Settings, SourceSettings, read_settings
from nornweave.connect.confluence.connector import CONFLUENCE
from nornweave.connect.feed.connector import FEED
from nornweave.connect.files.connector import FILES
from nornweave.connect.git.connector import GIT
from nornweave.connect.github.connector import GITHUB
from nornweave.connect.inbox.connector import INBOX
from nornweave.connect.jira.connector import JIRA
from nornweave.connect.messages.connector import MESSAGES
from nornweave.connect.protocol import Connector, Source, UnopenedSource
from nornweave.connect.slack.connector import SLACK
from nornweave.connect.stackexchange.connector import STACKEXCHANGE
from nornweave.connect.transcripts.connector import TRANSCRIPTS
from nornweave.connect.web.connector import WEB
from nornweave.core.errors import ConfigError
from nornweave.core.files.withheld import OwnFiles, check_place
from nornweave.core.types import Domain, SourceId

CONNECTORS: Mapping[str, Connector[Any]] = {
    each.type: each
    for each in (
        FILES,
        GIT,
        WEB,
        FEED,
        SLACK,
        GITHUB,
        CONFLUENCE,
        JIRA,
        TRANSCRIPTS,
        MESSAGES,
        STACKEXCHANGE,
        INBOX,
    )
}
_KINDS = {name: connector.settings for name, connector in CONNECTORS.items()}


def load_settings(file: Path, environment: Mapping[str, str] | None = None) -> Settings:
    """Read ``nornweave.yaml``, whose sources are of these kinds; see ``read_settings``.

    Raises:
        ConfigError: the file is missing or broken; a key is unknown, missing or of the wrong type; ids repeat.
    """
    return read_settings(file, _KINDS, environment)


def bound_of(settings: SourceSettings) -> str:
    """Say after which syncs, or how much time, what was changed or deleted at a source stops answering."""
    return str(CONNECTORS[settings.type].bound(settings))


def open_source(settings: SourceSettings, own: OwnFiles) -> Source:
    """Return the source; nothing is read yet.

    Args:
        own: of the workspace; remote sources keep in its ``data_dir`` what they have read.

    Raises:
        ConfigError: a key has the wrong form, or names what no source reads.
    """
    try:
        if settings.type != INBOX.type:  # that is in ``data_dir`` itself
            for key, value in settings:
                if isinstance(value, Path):
                    check_place(key, value, own)
        return CONNECTORS[settings.type].open(settings, own)
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"sources[{settings.id}]: {error}") from error


def open_sources(settings: Settings, domain: Domain) -> list[Source]:
    """Return the sources of a domain; one that cannot be opened is unavailable, and the others go on."""
    sources: list[Source] = []
    for each in settings.sources_of(domain):
        try:
            sources.append(open_source(each, settings.own_files))
        except ConfigError as error:
            sources.append(UnopenedSource(SourceId(each.id), domain, str(error)))
    return sources
