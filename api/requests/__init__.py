"""What requests say: their bodies and parameters, checked, and what each is given when it arrives."""

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """A JSON body. Values are not converted, and unknown fields are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Parameters(BaseModel):
    """Query parameters or fields of a form. Text is converted, and unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
