"""An encoder of queries that waits."""

import threading
from typing import Any

from waiting import HANGS_S

from nornweave.models.encoders.hashing import HashEncoder


class Held(HashEncoder):
    """An encoder that answers when it is let go."""

    def __init__(self) -> None:
        super().__init__(64)
        self.asked, self.go = threading.Event(), threading.Event()

    def encode_query(self, text: str) -> Any:
        self.asked.set()
        assert self.go.wait(HANGS_S)
        return super().encode_query(text)
