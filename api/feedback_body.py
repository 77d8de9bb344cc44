"""A judgment of one item of an answer: the body of ``POST /feedback``."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from nornweave.core.text.checked_values import Name, textual

MAX_QUERY_ID_CHARACTERS = 64


class FeedbackBody(BaseModel):
    """Whether one item of one answer was useful."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    query_id: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_QUERY_ID_CHARACTERS),
        AfterValidator(textual),
        Field(description="Of an answer of `/query`."),
    ]
    chunk_id: Annotated[Name, Field(description="Of an item that the answer showed.")]
    useful: Annotated[bool, Field(description="Whether the item helped with the question; true or false, no number.")]
