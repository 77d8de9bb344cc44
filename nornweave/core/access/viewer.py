"""On whose behalf something is read."""

from __future__ import annotations

from dataclasses import dataclass

from nornweave.core.errors import NotPermittedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Somebody who asks, or a program that does.

    Attributes:
        sees_everything: whatever groups a document names.
        operates: may also see and do what concerns the whole service: status, quality, metrics, syncs, the inbox.
        registers: may register agents of other machines, and nothing else.
        name: tells viewers apart, for feedback; empty where nobody is told apart.
    """

    groups: frozenset[str] = frozenset()
    sees_everything: bool = False
    operates: bool = False
    registers: bool = False
    name: str = ""

    def check_operates(self) -> None:
        """Refuse what concerns the whole service to those who only ask.

        Raises:
            NotPermittedError: the same for everything that is refused.
        """
        if not self.operates:
            raise NotPermittedError(
                "this is for those who operate the service: the service token, or a group of operators"
            )


REGISTRAR = Viewer(registers=True, name="registration token")
"""An agent that registers itself."""

OPERATOR = Viewer(sees_everything=True, operates=True)
"""Who runs the service: the command line, evaluations, and whoever has the service token where access is configured."""

ANYONE = Viewer(operates=True)
"""Whoever may ask where no access is configured: nobody is in a group, so what names groups is not shown."""
