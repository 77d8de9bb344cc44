"""What is declared of a kind of source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from nornweave.config.sources import SourceSettings
from nornweave.connect.protocol import Source

S = TypeVar("S", bound=SourceSettings)

AT_ONCE = "the next sync"


@dataclass(frozen=True, slots=True)
class Connector(Generic[S]):
    """A kind of source.

    Attributes:
        settings: the keys of an entry of ``sources:``; its field ``type`` names the kind.
        open: returns a source without reading anything. Takes the settings and ``data_dir``. It imports the feed and
            the parser itself: a process that only answers reads settings and loads neither.
        bound: says after which syncs, or how much time, what was changed or deleted at the source stops answering.
    """

    settings: type[S]
    open: Callable[[S, Path], Source]
    bound: Callable[[S], str] = lambda _: AT_ONCE

    @property
    def type(self) -> str:
        """The ``type`` of its sources."""
        return str(self.settings.model_fields["type"].default)
