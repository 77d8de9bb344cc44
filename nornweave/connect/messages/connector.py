"""Logs of messages: one a line, text or JSON lines."""

from __future__ import annotations

from typing import ClassVar, Literal

from nornweave.config.sources import SourceSettings
from nornweave.connect.protocol import Connector, Source
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Domain


class MessagesSettings(SourceSettings):
    """The keys of ``type: messages``."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CONVERSATIONS})

    type: Literal["messages"] = "messages"


def _open(settings: MessagesSettings, own: OwnFiles) -> Source:
    from nornweave.connect.messages.source import MessagesSource

    return MessagesSource(settings, own)


MESSAGES = Connector(MessagesSettings, _open)
