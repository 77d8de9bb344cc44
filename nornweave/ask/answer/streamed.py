"""An answer in two parts: its items first, then a model's text about them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from nornweave.ask.answer.context_budget import estimate_tokens
from nornweave.ask.answer.pages import USUAL_TOKENS, AnswerPage, answer_page
from nornweave.ask.answer.synthesis.prompt import PromptContext
from nornweave.ask.answer.synthesis.synthesizer import Synthesizer
from nornweave.ask.fuse.records import Answer, Synthesis
from nornweave.ask.views.answer import FusionResult


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """An answer whose items are known and whose text is not written yet.

    Attributes:
        document: the answer without a text.
    """

    document: FusionResult
    _answer: Answer
    _synthesizer: Synthesizer

    def write(self, on_text: Callable[[str], None], *, timeout_ms: int | None = None) -> Future[Synthesis]:
        """Let a model start to write the text, and return at once.

        Returns:
            A future of the text, or of the reason why there is none. Cancelling it ends the model's call.
        """
        answer = self._answer
        gaps, doubt = answer.recalled.coverage_gaps, answer.answerable.doubt
        context = PromptContext(answer.question.text, answer.items, answer.conflicts, gaps, doubt)
        return self._synthesizer.start(context, timeout_ms=timeout_ms, on_text=on_text)

    def page(self) -> AnswerPage:
        """Return the best sentences and items as text, for clients without a model's text."""
        return answer_page(self._answer, 0, lambda page: estimate_tokens(page.text) <= USUAL_TOKENS)
