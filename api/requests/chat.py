"""Bodies of chat clients, in the shape of OpenAI's clients: ``POST /v1/chat/completions`` and ``/v1/responses``.

A question that follows others is searched with a text that is made of all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from api.errors import MAX_SHOWN, encodable
from api.requests import Body
from nornweave.ask.search.pasted import SEARCHED_CHARACTERS
from nornweave.ask.search.question import Question
from nornweave.core.errors import QueryError
from nornweave.core.text.checked_values import MAX_QUERY_CHARACTERS, textual
from nornweave.core.text.function_words import FUNCTION_WORDS
from nornweave.core.text.index_fields import is_identifier
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

FEW_WORDS = 2
"""With less than these a question says nothing by itself: "and in production?"."""
SHORT = 5
"""With less than these a question may only replace the subject, and a pronoun stands for something named before."""
LONG = 8
"""With less than these, *they* of nothing in the question, and *and if*, stand for what was named before."""
COMPLETE = 4
"""Words from which a question to somebody is one by itself, whatever it says: "when are you open"."""

_WORD = re.compile(r"(?:(?<![\w-])--?(?=[^\W\d]))?[\w$]+(?:[-.'’][\w$]+)*")
"""A word, a flag with its dashes."""
_OTHER_SUBJECT = re.compile(
    r"\A\W*(?:(?:and|or|but|so|ok|okay)\b\W*)?(?:what|how)\s+about\b|\A\W*(?:and|or|but)\b", re.IGNORECASE
)
_GOES_ON = re.compile(
    r"\A\W*(?:and|but|or)\s+(?:if|when|while|unless)\b"
    r"|\A(?!.*\b(?!(?:always|does|this)\b)[^\W\d_]{2,}[^\W\d_su]s\b[^.?!]*\b(?:they|them)\b).*\b(?:they|them)\b",
    re.IGNORECASE | re.DOTALL,
)
"""A case of what was asked before, or a plural without the word that it stands for."""
_ADDS = re.compile(
    r"(?:in|on|at|for|with(?:out)?|by|from|to|during|before|after|since|until|if|is|are|does|do|did|can"
    r"|wh(?:en|ere|y|at|o|ich)|how)\Z",
    re.IGNORECASE,
)
"""Words after "and" that add to what was asked, or ask something else of it."""
_PRONOUN = re.compile(
    r"\b(?:it|its|they|them|theirs?|these|those|he|she|him|her|his|hers)\b|\b(?:the|that|this) (?:one|same)\b"
    r"|\b(?:this|that|there|then)\W*\Z|\A\W*(?:is|does|did|will|can|would|should|has)\s+(?:this|that)\b",
    re.IGNORECASE,
)
_ELLIPTIC = re.compile(
    r"\b(?:instead|otherwise|(?:what|who|where|any\w*) else)\W*\Z|\A\W*(?:what|who|where|how|which|when) else\b",
    re.IGNORECASE,
)
"""What was asked before is left out: "what was chosen instead?". Not "instead of nginx", which says it."""
_ONE = re.compile(
    r"(?:\b(?:an?|another|the|every|any|each)\s+(?:[\w-]+\s+)?|\b(?:[\w-]+(?:er|est)|new)\s+|\A\W*which\s+)ones?\b(?!\s+of\b)"
    r"|(?<!one by )(?<!only )(?<!no )\bone"
    r"(?:\W*\Z|\s+(?:by|with|without|in|on|from|for|at|manually|instead)\b(?!\s+one\b))",
    re.IGNORECASE,
)
"""What stands for a thing of the kind that was named before: "what does a higher one cost". Not "one of them"."""
_TASK = re.compile(
    r"\b(?:(?:is|are) there|(?:un)?install|run|start|upgrade|update|build|test|deploy|download|contribute)\b",
    re.IGNORECASE,
)
"""What is done with a product, not with one setting of it."""
_HELPERS = "is|are|does|do|did|can|could|will|would|should|must|has|have"
_OF_ITSELF = re.compile(rf"\b(?:was|{_HELPERS})\s+(?:it|they)\b", re.IGNORECASE)
"""What *it* does, not what is done with it: "can it print labels", but "which ovens use it"."""
_DONE = re.compile(r"\b(?:i|you|we|one|to)\s+do\s+(?:it|this|that|so)\b", re.IGNORECASE)
"""What was asked before, as something that is done: "can the oven run while I do it"."""
_YES_OR_NO = re.compile(rf"\A\W*(?:{_HELPERS})\b", re.IGNORECASE)
_OF_A_VALUE = re.compile(
    r"\b(?:chang|overr|(?:en|dis)abl|turn|rais|lower|increas|exceed|reach|appl(?:y|ies)|counts?\b|counted|affect|mean|hold"
    r"|default|values?\b|set(?:ting|s)?\b|config|limit|option|flag|param|environ|env\b|variab|unit|seconds|maxim|minim"
    r"|allow|permit|accept|smallest|largest|highest|lowest|possible)",
    re.IGNORECASE,
)
"""What is asked about the value of a setting."""
_DEFAULT = re.compile(r"\b(?:defaults?|values?)\b", re.IGNORECASE)
_COUNTS = re.compile(
    r"(?:many|much|often|long|far|fast|once|most|least|total|times?|per|(?:second|minute|hour|day|week|month|year)s?)\Z",
    re.IGNORECASE,
)
"""What is said of an amount, which is no amount of anything: "how many at once?"."""
_OF_OWN_PLURAL = re.compile(r"\b([^\W\d_]{3,}s\b[^.?!]{0,200}?\s)their\b", re.IGNORECASE)
"""Of what the question itself names: "files by their extension". A pasted text has plurals without end."""
_THERE = re.compile(r"\A\W*(?:is|are)\s+there\b", re.IGNORECASE)
_SPEAKER = re.compile(r"\b(?:you|i|we|one)\b", re.IGNORECASE)
_NAME = re.compile(r"[A-Z]|.*\d")
_DASHED = re.compile(r"-|\w+-\w")
_VERSION = re.compile(r"(?:v\d|\d+\.\d)[\d.]*\Z", re.IGNORECASE)
_FOR_ANOTHER = re.compile(
    r"\A\W*(?:and|or|but)\s+(?:for|with)\s+(?:[^\n]*[A-Z]|[a-z]+(?<!tion)(?<!ing)(?<!ment)(?<!s)\W*\Z)"
)
"""What names another: a name, or one word without an article that says nothing done, *memcached*, not *production*."""


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


def in_thread(question: str, before: Sequence[str]) -> str:
    """Return the text to search for a follow-up question: the earlier questions that it needs, then itself.

    A question that only names a new subject ("and the Falcon?", "what about a service?", "and for GitHub?", "and
    in v2?") replaces a part of the earlier question: a new version replaces the earlier version, a new name the earlier
    name, and other words those that were asked about the earlier name.

    Args:
        before: the questions before it, oldest first.
    """
    asked = question
    for earlier in reversed(before):
        room = SEARCHED_CHARACTERS - len(asked) - 1
        if room <= 0 or not leans(asked, earlier):
            break
        kept = _without_subject(earlier, asked) if _replaces_subject(asked) else earlier
        asked = f"{kept[:room]}\n{asked}"
    return asked


def leans(question: str, earlier: str = "") -> bool:
    """Tell whether a question needs the earlier question to be understood, by the words of both.

    After a question for the value of a setting, "how do I change it?" needs it, because *it* is the setting. "How do I
    install it?" and "does it support Flask 3?" do not, because *it* is the product. After a question that names
    nothing, *it* is the product in any question about a task, or with the answer yes or no. A question with only words
    for values, such as "which environment variable?", needs the earlier one.
    """
    words = _WORD.findall(question)
    said = [word for word in words if word.lower() not in FUNCTION_WORDS]
    question = _OF_OWN_PLURAL.sub(r"\1", question)
    if _ELLIPTIC.search(question) or _ONE.search(question):
        return sum(word.lower() not in {"one", "ones"} for word in said) < SHORT
    if (is_it := _PRONOUN.search(question)) or _OTHER_SUBJECT.match(question):
        is_task = _TASK.search(question) is not None
        is_own = is_task or (len(said) >= FEW_WORDS and _OF_ITSELF.search(question))
        names_nothing = earlier != "" and not _names(earlier)
        may_be_product = _DEFAULT.search(earlier) or (names_nothing and (is_task or _YES_OR_NO.match(question)))
        is_of_product = is_it and is_own and may_be_product and not _OF_A_VALUE.search(question)
        most = LONG if _GOES_ON.search(question) else SHORT
        return len(said) < most and not (is_of_product and not _DONE.search(question))
    is_asked_whole = len(words) >= COMPLETE and (_SPEAKER.search(question) or _THERE.match(question))
    is_complete = is_asked_whole or any(map(is_identifier, said)) or bool(_names(question))
    says_little = len(said) < FEW_WORDS or any(all(map(of.match, said)) for of in (_OF_A_VALUE, _COUNTS))
    return says_little and not is_complete


def _replaces_subject(question: str) -> bool:
    found = _OTHER_SUBJECT.match(question)
    following = _WORD.search(question, found.end()) if found else None
    if following is None or _PRONOUN.search(question):
        return False
    return not _ADDS.match(following[0]) or _FOR_ANOTHER.match(question) is not None or _is_version(question)


def _is_version(question: str) -> bool:
    names = _names(question)
    return bool(names) and all(map(_VERSION.match, names))


def _without_subject(earlier: str, question: str) -> str:
    """Return the earlier question without the part that the next one replaces: versions, names, or other words."""
    names, following = _names(earlier), _names(question)
    if dashed := _dashed(question):  # ``queue-depth`` is a name where it stands in the place of ``pool-size``
        names += [word for word in _dashed(earlier) if word not in names]
        following += [word for word in dashed if word not in following]
    versions = frozenset(filter(_VERSION.match, names))
    if _is_version(question):
        replaced = versions
    elif following or _FOR_ANOTHER.match(question):
        of_code = {_is_of_code(word) for word in following} or {False}
        of_kind = frozenset(word for word in names if _is_of_code(word) in of_code)
        replaced = (of_kind if of_kind or _FOR_ANOTHER.match(question) else frozenset(names)) - versions
    else:
        replaced = frozenset(word for word in _WORD.findall(earlier) if word.lower() not in FUNCTION_WORDS) - {*names}
    return " ".join(word for word in _WORD.findall(earlier) if word not in replaced) if names and replaced else earlier


def _is_of_code(name: str) -> bool:
    return "_" in name or name[0] == "-" or name[0].islower()


def _names(text: str) -> list[str]:
    """Return the words that name something: identifiers, flags, numbers, and capitalised words except the first."""
    first, *rest = _WORD.findall(text) or [""]
    of_code = [word.startswith("-") or is_identifier(word) for word in (first, *rest)]
    named = [word for word, is_name in zip(rest, of_code[1:], strict=True) if is_name or _NAME.match(word)]
    return [word for word in [*named, *([first] if of_code[0] else [])] if word.lower() not in FUNCTION_WORDS]


def _dashed(text: str) -> list[str]:
    """Return flags and words with a dash, such as ``read-only``, except those with a function word: *point-in-time*."""
    return [
        word
        for word in _WORD.findall(text)
        if _DASHED.match(word) and FUNCTION_WORDS.isdisjoint(word.lower().strip("-").split("-"))
    ]
