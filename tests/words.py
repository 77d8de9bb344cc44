"""Words and marks as tokens, so that limits can be counted by hand."""

import re

TOKEN = re.compile(r"\w+|[^\w\s]")


class Words:
    """A token is a word or a mark, unless told otherwise."""

    version = "words"

    def __init__(self, token: re.Pattern[str] = TOKEN) -> None:
        self._token = token

    def token_starts(self, text: str) -> list[int]:
        return [match.start() for match in self._token.finditer(text)]
