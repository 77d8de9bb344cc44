"""Bodies of chat clients, in the shape of OpenAI's clients: ``POST /v1/chat/completions`` and ``/v1/responses``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from api.errors import MAX_SHOWN, encodable
from api.requests import Body
from api.requests.thread import in_thread
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

TEXT_TYPES = ("text", "input_text", "output_text")
MAX_NAMED = 20
"""Ignored fields that a warning names; the others are counted."""

Text = Annotated[str, AfterValidator(textual)]


def _other_than_text(kind: str) -> str:
    if kind in TEXT_TYPES:
        raise ValueError("a part of this type holds its 'text' as a string")
    return kind


class TextPart(BaseModel):
    """A part of a message that holds text."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: Literal["text", "input_text", "output_text"]
    text: Text


class OtherPart(BaseModel):
    """A part of a message that is ignored: an image, a file, a refusal or a model's reasoning."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: Annotated[str, AfterValidator(_other_than_text), Field(json_schema_extra={"not": {"enum": [*TEXT_TYPES]}})]


class ChatMessage(BaseModel):
    """One message of a conversation. Only messages of the user are read."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    role: str
    content: Text | list[TextPart | OtherPart] | None = None

    @property
    def text(self) -> str:
        """Return the text of the message."""
        if not isinstance(self.content, list):
            return (self.content or "").strip()
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart)).strip()

    @property
    def skipped(self) -> list[str]:
        """Return the types of the parts that are ignored."""
        parts = self.content if isinstance(self.content, list) else []
        return [part.type for part in parts if isinstance(part, OtherPart)]


class InputItem(ChatMessage):
    """A message, or an item that is ignored: a tool's call or output, or a model's reasoning."""

    role: str = ""


class StreamOptions(BaseModel):
    """Options of a streamed answer."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    include_usage: Annotated[bool | None, Field(description="Send the usage in a last event of its own.")] = None


ModelName = Annotated[
    str,
    StringConstraints(max_length=64),
    AfterValidator(textual),
    Field(
        description="One of `/v1/models`: all domains, or one.",
        json_schema_extra={"enum": [MODEL, *(f"{MODEL}:{domain.value}" for domain in Domain)]},
    ),
]


class Conversation(Body):
    """A conversation; its last message by the user is the question.

    Clients send fields for many servers. Unused fields are ignored, and ``warnings`` of the answer names them.
    """

    model_config = ConfigDict(extra="allow")
    field: ClassVar[str]

    model: ModelName
    stream: Annotated[bool | None, Field(description="Send the text as events while it is written.")] = False

    @property
    def said(self) -> Sequence[ChatMessage]:
        """Return the messages, oldest first."""
        raise NotImplementedError

    @property
    def warnings(self) -> list[str]:
        """Return one sentence that names ignored fields and parts; empty if there are none."""
        fields = [name for name, value in (self.model_extra or {}).items() if value is not None]
        parts = dict.fromkeys(kind for message in self.said for kind in message.skipped)
        ignored = {"fields that are not used": fields, "parts of messages that are no text": [*parts]}
        said = "; ".join(f"{what}: {named(names)}" for what, names in ignored.items() if names)
        return [f"ignored {said}"] if said else []

    def question(self, served: tuple[Domain, ...], arrived: Question, *, synthesize: bool) -> Question:
        """Return ``arrived`` with the text of the question and the domains of the model.

        Raises:
            QueryError: the model does not exist, the conversation has no question, or the question is too long.
        """
        models = model_domains(served)
        if self.model not in models:
            raise QueryError("model", f"{self.model!r} is not served; served: {', '.join(models)}")
        return replace(arrived, text=self._asked(), domains=models[self.model], synthesize=synthesize)

    def _asked(self) -> str:
        """Return the question: the user's last message, with the earlier messages that it refers to before it."""
        by_user = [message for message in self.said if message.role == "user"]
        asked = [message.text for message in by_user if message.text]
        if by_user and by_user[-1].skipped and not by_user[-1].text:
            kinds = named([*dict.fromkeys(by_user[-1].skipped)])
            raise QueryError(self.field, f"the last message by the user is not text ({kinds}); only text can be asked")
        if not asked:
            raise QueryError(self.field, "no message by the user says anything; ask something")
        *before, question = asked
        if len(question) > MAX_QUERY_CHARACTERS:
            problem = f"the last message by the user has {len(question)} characters; {MAX_QUERY_CHARACTERS} are allowed"
            raise QueryError(self.field, problem)
        return in_thread(question, before)


class ChatBody(Conversation):
    """A conversation in the shape of ``POST /v1/chat/completions``."""

    field = "messages"

    messages: Annotated[
        list[ChatMessage],
        Field(
            min_length=1,
            max_length=MAX_MESSAGES,
            description="The last one by the user is the question.",
            json_schema_extra={"contains": QUESTION},
        ),
    ]
    n: Annotated[Literal[1] | None, Field(description="There is one answer.")] = None
    stream_options: StreamOptions | None = None

    @property
    def said(self) -> Sequence[ChatMessage]:
        """Return the messages, oldest first."""
        return self.messages


class ResponsesBody(Conversation):
    """A conversation in the shape of ``POST /v1/responses``. An ``input`` that is only text is a question."""

    field = "input"

    input: (
        Annotated[Text, Field(json_schema_extra={"pattern": r"\S"})]
        | Annotated[
            list[InputItem], Field(min_length=1, max_length=MAX_MESSAGES, json_schema_extra={"contains": QUESTION})
        ]
    )
    previous_response_id: Annotated[None, Field(description="No answer is stored: send what was said before.")] = None

    @property
    def said(self) -> Sequence[ChatMessage]:
        """Return the messages, oldest first. An ``input`` that is only text is one message."""
        return self.input if isinstance(self.input, list) else (ChatMessage(role="user", content=self.input),)


def model_domains(served: tuple[Domain, ...]) -> dict[str, tuple[Domain, ...] | None]:
    """Return each model's domains by its name; ``None`` lets routing choose the domains."""
    return {MODEL: None, **{f"{MODEL}:{domain.value}": (domain,) for domain in served}}


def named(names: Sequence[str]) -> str:
    """Return the names as a list in words; names beyond ``MAX_NAMED`` are only counted."""
    shown = ", ".join(encodable(name[:MAX_SHOWN]) for name in names[:MAX_NAMED])
    return shown + (f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else "")
