"""The port to the language model: ``Synthesizer``. If it fails, an answer only lacks its text.

One call of a model by LiteLLM gives its text as a whole, or piece by piece, checked on the way. The text is cut into
parts at blanks outside of brackets, and each part is checked alone: entities become the letters that they stand for,
invisible letters are removed; then come its citations and its links (``citations``). The result is quoted line by line
(``escaping``). The parts depend on the text alone, so it does not matter in which pieces it arrives.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import aclosing
from dataclasses import dataclass, field
from html import unescape
from html.entities import html5
from typing import Any, TypeAlias

from nornweave.ask.answer.context_budget import estimate_tokens
from nornweave.ask.answer.escaping import CLOSING, OPENING, QuotedStream
from nornweave.ask.answer.pages import USUAL_TOKENS, AnswerPage, answer_page
from nornweave.ask.answer.synthesis.citations import LONGEST_BRACKET, Citations, Links
from nornweave.ask.answer.synthesis.prompt import PromptContext, build_prompt
from nornweave.ask.fuse.records import Answer, Synthesis
from nornweave.ask.views.answer import FusionResult
from nornweave.config.workspace import FusionSettings
from nornweave.core.errors import ConfigError
from nornweave.core.text.terminal import IGNORABLE, JOINERS, counted, legible
from nornweave.core.tracing import model_span
from nornweave.models.hosted import NO_MODEL, RUNTIME, Prompt, why_it_failed, why_not_asked

log = logging.getLogger(__name__)

HEAD_START = 0.6
"""Share of the time that the first model has for itself; then its fallback is asked as well, and the first answer
counts."""
MOST_AT_ONCE = 4
"""Answers that one synthesizer writes at the same time."""
LEAST_S = 0.05
"""With less time than this nobody is asked."""
GRACE_S = 0.1
"""What the loop may take to hand over what it has at the deadline."""

OLLAMA = ("ollama", "ollama_chat")
OLLAMA_WINDOW = 8192
"""Ollama cuts a prompt without a word to a window that it is not asked to widen; each other width loads the model anew,
hence the steps of this size."""
CHARS_PER_TOKEN = 3
"""A low guess, for the window's sake."""

DEEPEST = 5
"""Entities that stand for entities, and brackets inside of brackets, are read so often; those of a text with more are
broken."""

_TOKENS = re.compile(rf"[\s{re.escape(OPENING + CLOSING)}]|[^\s{re.escape(OPENING + CLOSING)}]+")
_ENTITY = re.compile(r"&(?:#[0-9]{1,16}|#[xX][0-9a-fA-F]{1,16}|[A-Za-z][A-Za-z0-9]{1,31});")
# Joiners and variation selectors stay in scripts and emoji that need them.
_INVISIBLE = re.compile(f"(?:^|(?<=[\x00-\x7f]))[{IGNORABLE}{JOINERS}]+|[{IGNORABLE}]+")
_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})(.*)")
_NO_BRACKETS = str.maketrans(dict.fromkeys(OPENING, "(") | dict.fromkeys(CLOSING, ")"))
_BLANK, _WORD = re.compile(r"\s"), re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The model that answered, its answer, and the failures of the others."""

    model: str | None = None
    answer: ModelAnswer | None = None
    failures: Mapping[str, str] = field(default_factory=dict)


class Synthesizer:
    """Writes answers with the configured model and its fallback. Every method may be called from any thread.

    Keys and addresses come from the environment variables that LiteLLM reads (``OPENAI_API_KEY``, ``OPENAI_API_BASE``,
    ``OLLAMA_API_BASE``, …), at every call.
    """

    def __init__(self, settings: FusionSettings) -> None:
        self._settings = settings
        self._slots = threading.BoundedSemaphore(MOST_AT_ONCE)

    def prepare(self) -> None:
        """Start to load LiteLLM, which takes seconds, and return at once."""
        if self._models:
            RUNTIME.litellm()

    def synthesize(self, context: PromptContext, *, timeout_ms: int | None = None) -> Synthesis:
        """Let a model answer the question from the items.

        The model and its fallback have ``synthesis_timeout_ms`` together. The time starts when LiteLLM is loaded.

        Returns:
            The text after ``check_written``. Its ``reason`` says why there is no text, or a remark on the text:
            that it was cut off, that it cites no passage, or that links are left out.
            Trouble with models never raises; it is logged without prompt, content and keys.
        """
        if not self._models:
            return _without(NO_MODEL)
        loading = RUNTIME.litellm()
        due = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        try:
            loading.exception(None if due is None else max(0.0, due - time.monotonic()))
        except TimeoutError:
            return _without(f"LiteLLM was still being loaded after {timeout_ms} ms")
        left_ms = None if due is None else max(0, round((due - time.monotonic()) * 1000))
        writing = self.start(context, timeout_ms=left_ms)
        seconds = self._seconds(left_ms)
        try:
            return writing.result(seconds + GRACE_S)
        except (TimeoutError, CancelledError):  # the loop is stuck, and the slot taken until it is not; or it ends
            return _without(self._for_each_model(_late(seconds)))

    def start(
        self, context: PromptContext, *, timeout_ms: int | None = None, on_text: Callable[[str], None] | None = None
    ) -> Future[Synthesis]:
        """Let a model start to answer the question from the items, and return at once.

        Args:
            context: the material; the model sees the first ``synthesis_top_k`` items.
            timeout_ms: counted after LiteLLM is loaded; ``None`` if only the settings limit the time.
            on_text: gets the text piece by piece, in a thread that it must not block. Joined, the pieces are the text
                of the result, or its beginning. Only the first model that writes anything is passed on.

        Returns:
            A future of what ``synthesize`` returns; cancelling it ends the model's call. A text that was being sent
            when its model failed or the time ended is kept, and ``reason`` says so.
        """
        return RUNTIME.start(self._written(context, timeout_ms, on_text))

    async def _written(
        self, context: PromptContext, timeout_ms: int | None, on_text: Callable[[str], None] | None
    ) -> Synthesis:
        if not context.items:
            return Synthesis(text=None, reason="there are no results to write about")
        if not self._models:
            return _without(NO_MODEL)
        try:
            litellm = await asyncio.shield(asyncio.wrap_future(RUNTIME.litellm()))
        except ConfigError as error:  # it is not installed
            return _without(str(error))
        except Exception as error:
            return _without(f"LiteLLM cannot be loaded ({type(error).__name__}); install it again")
        due = asyncio.get_running_loop().time() + self._seconds(timeout_ms)
        prompt = build_prompt(context, top_k=self._settings.synthesis_top_k)
        seconds = due - asyncio.get_running_loop().time()
        if seconds < LEAST_S:
            return _without(self._for_each_model("no time left to ask"))
        if not self._slots.acquire(blocking=False):
            return _without(self._for_each_model(f"busy with {MOST_AT_ONCE} other answers; ask again later"))
        try:
            listener = Listener(prompt, on_text) if on_text else None
            return self._finish(await self._first_answer(litellm, prompt, seconds, listener))
        finally:
            self._slots.release()

    def _seconds(self, timeout_ms: int | None) -> float:
        limit = self._settings.synthesis_timeout_ms
        return min(limit, limit if timeout_ms is None else timeout_ms) / 1000

    @property
    def _models(self) -> tuple[str, ...]:
        named = (self._settings.synthesis_model, self._settings.synthesis_fallback)
        return tuple(dict.fromkeys(filter(None, named)))

    def _for_each_model(self, reason: str) -> str:
        return "; ".join(f"{model}: {reason}" for model in self._models)

    async def _first_answer(self, litellm: Any, prompt: Prompt, seconds: float, listener: Listener | None) -> _Outcome:
        """Ask the models in turn; return the first answer.

        The next model starts when one fails or its head start is over. Models that are too late are cancelled.
        """
        clock = asyncio.get_running_loop().time
        due = clock() + seconds
        waiting = list(self._models)
        asked: dict[asyncio.Task[Said], str] = {}
        failures: dict[str, str] = {}
        try:
            while waiting or asked:
                if waiting:
                    model = waiting.pop(0)
                    asking = call(litellm, model, prompt, self._settings, due - clock(), listener)
                    asked[asyncio.create_task(asking)] = model
                pause = (due - clock()) * (HEAD_START if waiting else 1)
                done, _ = await asyncio.wait(asked, timeout=max(0.0, pause), return_when=asyncio.FIRST_COMPLETED)
                speaking = listener.model if listener else None
                if speaking:  # what a reader has seen the beginning of is not begun anew
                    waiting.clear()
                for task in [task for task in asked if task in done]:
                    model, said = asked.pop(task), _read_outcome(litellm, task, prompt)
                    if isinstance(said, ModelAnswer):
                        return _Outcome(model, said, failures)
                    if listener and model == speaking:
                        return _Outcome(model, listener.broken_off(said), failures)
                    failures[model] = said
                if not done and clock() >= due:
                    break
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        late = _late(seconds)
        if listener and listener.model:
            return _Outcome(listener.model, listener.broken_off(late), failures)
        return _Outcome(failures=failures | dict.fromkeys(asked.values(), late))

    def _finish(self, outcome: _Outcome) -> Synthesis:
        failed = "; ".join(f"{model}: {reason}" for model, reason in outcome.failures.items())
        if outcome.answer is None:
            return _without(failed)
        if failed:
            log.warning("synthesis by %s, because of %s", outcome.model, failed)
        checked = outcome.answer.shown
        limit = self._settings.synthesis_max_tokens
        cut = {"length": f"cut off at {limit} tokens", "content_filter": "cut off by the model's content policy"}
        notes = (
            cut.get(outcome.answer.finish_reason or ""),
            outcome.answer.broken_off and f"broken off: {outcome.answer.broken_off}",
            None if checked.cited else "cites none of the results",
            f"{counted(checked.links_left_out, 'link')} left out" if checked.links_left_out else None,
        )
        return Synthesis(
            text=checked.text or None,
            reason="; ".join(filter(None, notes)) or None,
            model=outcome.model,
            cited=checked.cited,
            unknown_citations=checked.unknown,
            links_left_out=checked.links_left_out,
        )


def _without(reason: str) -> Synthesis:
    log.warning("no synthesis: %s", reason)
    return Synthesis(text=None, reason=reason)


def _late(seconds: float) -> str:
    return f"no answer within {seconds * 1000:.0f} ms"


def _read_outcome(litellm: Any, task: asyncio.Task[Said], prompt: Prompt) -> Said:
    if task.cancelled():
        return "was broken off"
    error = task.exception()
    return task.result() if error is None else why_it_failed(litellm, error, prompt.messages[-1]["content"])


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The shown text of a model, and why it stopped. ``broken_off`` means that the model had more to say."""

    shown: CheckedText
    finish_reason: str | None
    broken_off: str | None = None


Said: TypeAlias = ModelAnswer | str
"""An answer, or why there is none."""


class Listener:
    """Passes on the text of models that write piece by piece, but only of the first one that writes anything."""

    def __init__(self, prompt: Prompt, on_text: Callable[[str], None]) -> None:
        self._stream = CheckedStream(prompt)
        self._on_text = on_text
        self.model: str | None = None

    async def follow(self, model: str, parts: AsyncIterator[Any]) -> Said:
        """Pass on a model's text; return all of it."""
        finish_reason, has_said = None, False
        async for part in parts:
            choice = part.choices[0] if part.choices else None
            finish_reason = getattr(choice, "finish_reason", None) or finish_reason
            piece = getattr(getattr(choice, "delta", None), "content", None)
            if not piece:
                continue
            if self.model not in {None, model}:
                return "another model was quicker"
            self.model = model
            has_said = has_said or not piece.isspace()
            self._tell(self._stream.add(piece))
        if not has_said:
            return f"answered with nothing (finish_reason {finish_reason!r})"
        # LiteLLM (1.106) makes up a "stop" where the server went away in mid answer.
        if getattr(parts, "received_finish_reason", finish_reason) is None:
            return self.broken_off("the connection ended before the answer did")
        return self._finish_answer(finish_reason)

    def broken_off(self, reason: str) -> ModelAnswer:
        """Return the text that arrived before the model stopped in the middle, with the reason."""
        return self._finish_answer(None, reason)

    def _finish_answer(self, finish_reason: str | None, broken_off: str | None = None) -> ModelAnswer:
        self._tell(self._stream.rest())
        return ModelAnswer(self._stream.checked(), finish_reason, broken_off)

    def _tell(self, text: str) -> None:
        if text:
            self._on_text(text)


async def call(
    litellm: Any, model: str, prompt: Prompt, settings: FusionSettings, seconds: float, listener: Listener | None
) -> Said:
    """Return a model's answer, or a sentence that says why there is none. A ``listener`` gets the text in pieces."""
    # In a thread, as some providers fetch their key from the network as soon as they are named.
    problem = await asyncio.to_thread(why_not_asked, litellm, model)
    if problem is not None:
        return problem
    with model_span(model):
        answer = await litellm.acompletion(
            model=model,
            messages=[dict(message) for message in prompt.messages],
            temperature=settings.synthesis_temperature,
            max_tokens=settings.synthesis_max_tokens,
            timeout=seconds,
            max_retries=0,
            num_retries=0,
            drop_params=True,
            caching=False,
            stream=listener is not None,
            **_ollama_options(litellm, model, prompt, settings),
        )
        if listener is None:
            return _read(answer, prompt)
        async with aclosing(answer) as parts:  # a call that is cancelled ends now, not when somebody collects garbage
            return await listener.follow(model, parts)


def _ollama_options(litellm: Any, model: str, prompt: Prompt, settings: FusionSettings) -> dict[str, Any]:
    provider = model.partition("/")[0]
    if provider not in OLLAMA:
        return {}
    # A model that its price list does not know makes LiteLLM (1.106) ask the server about it five times a call,
    # blocking, with a timeout of 6,000 s.
    free = {"litellm_provider": provider, "mode": "chat", "input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
    litellm.model_cost.setdefault(model, free)
    size = sum(len(message["content"]) for message in prompt.messages) // CHARS_PER_TOKEN
    needed = size + settings.synthesis_max_tokens
    return {"num_ctx": -(-needed // OLLAMA_WINDOW) * OLLAMA_WINDOW}


def _read(answer: Any, prompt: Prompt) -> Said:
    choices = getattr(answer, "choices", None)
    if not choices:
        return "answered without a choice"
    text = choices[0].message.content
    if not isinstance(text, str) or not text.strip():
        return f"answered with nothing (finish_reason {choices[0].finish_reason!r})"
    return ModelAnswer(check_written(text, prompt), choices[0].finish_reason)


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A model's answer after all checks.

    Attributes:
        text: every known citation is ``[domain:chunk_id]`` in its own bracket, unknown ones are removed; the only links
            are addresses of passages; no line looks like a header or separator of the answer.
        cited: the ids of the cited chunks, in order, each once.
        unknown: citations of chunks that the prompt does not allow, as written, in order, each once.
        links_left_out: how many addresses were removed.
    """

    text: str
    cited: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    links_left_out: int = 0


def check_written(text: str, prompt: Prompt) -> CheckedText:
    """Return the checked form of a whole text that answers a prompt."""
    stream = CheckedStream(prompt)
    stream.add(text)
    stream.rest()
    return stream.checked()


class CheckedStream:
    """Checks a model's text in pieces, with the same result as ``check_written``."""

    def __init__(self, prompt: Prompt) -> None:
        self._citations = Citations(prompt.allowed.values())
        self._links = Links(prompt.urls, prompt.messages[-1]["content"])
        self._lines = QuotedStream()
        self._word: list[str] = []
        self._part: list[str] = []
        self._length = 0
        self._opened: deque[int] = deque()
        self._passed: list[str] = []
        self._blank = ""

    def add(self, piece: str) -> str:
        """Add a piece of the model's text; return the part that can be sent now."""
        self._word.append(piece)
        if not _BLANK.search(piece):
            return ""
        text = "".join(self._word)
        last = "" if text[-1].isspace() else text.split()[-1]
        settled = text[: len(text) - len(last)].rstrip()
        self._word = [text[len(settled) :]]
        return self._pass_on("".join(map(self._checked_part, self._parts(settled))))

    def rest(self) -> str:
        """Return the part that was not sent yet, once the text is complete. An open code fence is closed."""
        parts = (*self._parts("".join(self._word)), "".join(self._part))
        self._word = []
        passed = self._pass_on("".join(map(self._checked_part, parts)) + self._lines.rest())
        self._blank = ""
        return passed + self._pass_on(_end_of_fence("".join(self._passed)))

    def checked(self) -> CheckedText:
        """Return the text that was sent, with the findings in it."""
        text, unknown = "".join(self._passed), tuple(self._citations.unknown)
        return CheckedText(text, self._citations.cited(text), unknown, self._links.left_out)

    def _parts(self, text: str) -> Iterator[str]:
        """Add a text, which must end before a blank or be the last one. Yield the parts that are now complete."""
        for token in _TOKENS.findall(_WORD.sub(lambda word: _as_seen(word[0]), legible(text))):
            if token.isspace():
                yield from self._complete_part()
            elif token in OPENING:
                self._opened.append(self._length)
            elif token in CLOSING and self._opened:
                self._opened.pop()
            self._part.append(token)
            self._length += len(token)
        yield from self._complete_part()

    def _complete_part(self) -> Iterator[str]:
        while self._opened and self._length - self._opened[0] > LONGEST_BRACKET:
            self._opened.popleft()
        if self._part and not self._part[-1].isspace() and not self._opened:
            yield "".join(self._part)
            self._part, self._length = [], 0

    def _checked_part(self, part: str) -> str:
        for _ in range(DEEPEST):
            checked = self._links.take_out(self._citations.check(part))
            if checked == part:
                return self._lines.add(part)
            part = checked
        return self._lines.add(part.translate(_NO_BRACKETS))

    def _pass_on(self, text: str) -> str:
        """Return the part of a text to send now. Blanks at its end are kept and sent only if more text follows."""
        text = self._blank + text
        passed = text.rstrip()
        self._blank = text[len(passed) :]
        if not self._passed:
            passed = passed.lstrip()
        self._passed += [passed] if passed else []
        return passed


def _as_seen(word: str) -> str:
    """Return a word as readers see it: entities are resolved, invisible letters removed."""
    for _ in range(DEEPEST):
        seen = _INVISIBLE.sub("", legible(_ENTITY.sub(_character, word)))
        if seen == word:
            return word
        word = seen
    return _ENTITY.sub(lambda entity: f"& {entity[0][1:]}", word)


def _character(entity: re.Match[str]) -> str:
    return unescape(entity[0]) if entity[0][1] == "#" else html5.get(entity[0][1:], entity[0])


def _end_of_fence(text: str) -> str:
    """Return the line that closes an open code fence; empty if none is open."""
    open_fence: re.Match[str] | None = None
    for line in text.split("\n"):
        fence = _FENCE.fullmatch(line)
        if fence is None:
            continue
        if open_fence is None:
            open_fence = None if fence[2][0] == "`" in fence[3] else fence
        elif fence[2].startswith(open_fence[2]) and not fence[3].strip():
            open_fence = None
    return f"\n{open_fence[1]}{open_fence[2]}" if open_fence else ""


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
