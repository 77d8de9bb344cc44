"""Meeting transcripts: ``.vtt``, ``.srt``, and ``.txt`` with ``Speaker: text`` lines."""

from __future__ import annotations

from typing import ClassVar, Literal

from nornweave.config.sources import SourceSettings
from nornweave.connect.protocol import Connector, Source
from nornweave.core.files.withheld import OwnFiles
from nornweave.core.types import Domain


class TranscriptsSettings(SourceSettings):
    """The keys of ``type: transcripts``."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CONVERSATIONS})

    type: Literal["transcripts"] = "transcripts"


def _open(settings: TranscriptsSettings, own: OwnFiles) -> Source:
    from nornweave.connect.transcripts.source import TranscriptSource

    return TranscriptSource(settings, own)


TRANSCRIPTS = Connector(TranscriptsSettings, _open)
