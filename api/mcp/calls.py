"""What a call of a tool is given besides its arguments, and the gates that it passes: those of the API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from api.arrival import Arrival
from api.state import Serving
from nornweave.ask.search.question import Question
from nornweave.ask.seen import SeenEngine
from nornweave.ask.seen.answers import SeenAnswers
from nornweave.ask.views.tools import Link

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool.

    Attributes:
        serving: what is asked.
        arrival: when it came and until when it has to be answered.
        link: makes the URLs of the result.
    """

    serving: Serving
    arrival: Arrival
    link: Link

    async def ask(self, question: Question, work: Callable[[SeenAnswers], T]) -> T:
        """Do what asks the domains, as ``POST /query`` does; raises as ``Serving.ask`` does."""
        return await self.serving.ask(question, work)

    async def look_up(self, work: Callable[[SeenEngine], T]) -> T:
        """Do what only reads, in its turn; raises as ``ask`` does."""
        return await self.serving.lookups.run(lambda: work(self.serving.engine), self.arrival.left_s)
