"""Jira Cloud: issues with their comments."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from nornweave.config.base import formed
from nornweave.connect.mirror.settings import AtlassianSettings
from nornweave.connect.protocol import Connector, Source
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Domain


class JiraSettings(AtlassianSettings):
    """The keys of ``type: jira``."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CONVERSATIONS})

    type: Literal["jira"] = "jira"
    projects: tuple[Annotated[str, formed(r"[A-Za-z]\w{0,99}", "the key of a project, such as 'PAY'")], ...] = ()
    """Keys of projects; empty: every project that the user may read."""


def _open(settings: JiraSettings, own: OwnFiles) -> Source:
    from nornweave.connect.jira.feed import JiraFeed
    from nornweave.connect.mirror.mirrored import MirroredSource

    return MirroredSource(settings, JiraFeed(settings), own.data_dir)


JIRA = Connector(JiraSettings, _open)
