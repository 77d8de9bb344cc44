"""What requests say: their bodies and parameters, checked, and what each is given when it arrives."""

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """A body of JSON: nothing is converted, and no field is unknown."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Parameters(BaseModel):
    """What stands behind the question mark, or in a form: text is converted, and no field is unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True)
