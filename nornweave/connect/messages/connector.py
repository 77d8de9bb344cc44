"""Logs of messages: one a line, text or JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from nornweave.config.sources import SourceSettings
from nornweave.connect.protocol import Connector, Source
from nornweave.core.types import Domain


class MessagesSettings(SourceSettings):
    """The keys of ``type: messages``."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CONVERSATIONS})

    type: Literal["messages"] = "messages"


def _open(settings: MessagesSettings, data_dir: Path) -> Source:  # noqa: ARG001 - the files are not copied
    from nornweave.connect.messages.source import MessagesSource

    return MessagesSource(settings)


MESSAGES = Connector(MessagesSettings, _open)
