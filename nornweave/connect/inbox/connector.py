"""Documents that were handed in, over HTTP or by ``nornweave push``."""

from __future__ import annotations

from typing import ClassVar, Literal

from nornweave.config.sources import SourceSettings
from nornweave.connect.protocol import Connector, Source
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Domain, SourceId


class InboxSettings(SourceSettings):
    """The keys of ``type: inbox``."""

    domains: ClassVar[frozenset[Domain]] = frozenset(Domain)

    type: Literal["inbox"] = "inbox"


def _open(settings: InboxSettings, own: OwnFiles) -> Source:  # noqa: ARG001 - ``path`` says where it is
    from nornweave.connect.inbox.source import InboxSource

    return InboxSource(SourceId(settings.id), settings.domain, settings.required_path)


INBOX = Connector(InboxSettings, _open)
