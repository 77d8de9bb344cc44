"""What chat clients send: the body of ``POST /v1/chat/completions``, in the shape that OpenAI's clients know."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from api.requests import Body, Parameters
from api.requests.query import in_thread
from nornweave.ask.search.question import Question
from nornweave.core.errors import QueryError
from nornweave.core.text.checked_values import MAX_QUERY_CHARACTERS, textual
from nornweave.core.types import Domain

MODEL = "nornweave"
"""The model that answers from all served domains; ``nornweave:code`` answers from one."""
MAX_MESSAGES = 1000

QUESTION = {
    "type": "object",
    "properties": {"role": {"const": "user"}, "content": {"type": "string", "pattern": r"\S"}},
    "required": ["role", "content"],
}

Text = Annotated[str, AfterValidator(textual)]
Ignored = Annotated[Any, Field(description="Accepted and ignored.")]


class TextPart(Parameters):
    """A part of a message; only text can be asked."""

    type: Literal["text"]
    text: Text


class ChatMessage(BaseModel):
    """One message of a conversation."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Text | list[TextPart] | None = None

    @property
    def text(self) -> str:
        """Return what it says."""
        parts = [self.content or ""] if not isinstance(self.content, list) else [part.text for part in self.content]
        return "\n".join(parts).strip()


class ChatBody(Body):
    """A conversation; its last message by the user is the question."""

    model: Annotated[
        str,
        StringConstraints(max_length=64),
        AfterValidator(textual),
        Field(
            description="One of `/v1/models`: all domains, or one.",
            json_schema_extra={"enum": [MODEL, *(f"{MODEL}:{domain.value}" for domain in Domain)]},
        ),
    ]
    messages: Annotated[
        list[ChatMessage],
        Field(
            min_length=1,
            max_length=MAX_MESSAGES,
            description="The last one by the user is the question.",
            json_schema_extra={"contains": QUESTION},
        ),
    ]
    stream: Annotated[bool | None, Field(description="Send the text as events while it is written.")] = False
    n: Literal[1] | None = None
    stream_options: Ignored = None
    temperature: Ignored = None
    top_p: Ignored = None
    max_tokens: Ignored = None
    max_completion_tokens: Ignored = None
    stop: Ignored = None
    presence_penalty: Ignored = None
    frequency_penalty: Ignored = None
    logit_bias: Ignored = None
    logprobs: Ignored = None
    top_logprobs: Ignored = None
    response_format: Ignored = None
    reasoning_effort: Ignored = None
    seed: Ignored = None
    service_tier: Ignored = None
    store: Ignored = None
    metadata: Ignored = None
    parallel_tool_calls: Ignored = None
    tools: Ignored = None
    tool_choice: Ignored = None
    user: Ignored = None

    def question(self, served: tuple[Domain, ...], arrived: Question, *, synthesize: bool) -> Question:
        """Return the question as the query path takes it.

        Raises:
            QueryError: no such model, no question, or one that is too long.
        """
        models = model_domains(served)
        if self.model not in models:
            raise QueryError("model", f"{self.model!r} is not served; served: {', '.join(models)}")
        return replace(arrived, text=self._asked(), domains=models[self.model], synthesize=synthesize)

    def _asked(self) -> str:
        """Return the last message of the user, after those before that it leans on."""
        asked = [message.text for message in self.messages if message.role == "user" and message.text]
        if not asked:
            raise QueryError("messages", "no message by the user says anything; ask something")
        *before, question = asked
        if len(question) > MAX_QUERY_CHARACTERS:
            problem = f"the last message by the user has {len(question)} characters; {MAX_QUERY_CHARACTERS} are allowed"
            raise QueryError("messages", problem)
        return in_thread(question, before)


def model_domains(served: tuple[Domain, ...]) -> dict[str, tuple[Domain, ...] | None]:
    """Return the models by name, each with the domains that it asks; ``None`` leaves it to routing."""
    return {MODEL: None, **{f"{MODEL}:{domain.value}": (domain,) for domain in served}}
