"""An answer as a message: sentences first, then conflicts, then the passages with their permalinks.

What passages say is data. Slack's links and mentions take three signs, ``&``, ``<`` and ``>``: escaped, a text can
neither mention a channel or a person nor form a link. Each text is one line: emphasis and code end there, but for
fences, of which one sign is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nornweave.ask.fuse.records import Answer, ConflictRecord
from nornweave.ask.views.tools import Link, line, title_of
from nornweave.core.text.legible import counted

CONFLICTS_SHOWN = 3
TEXT_CHARACTERS = 400
TITLE_CHARACTERS = 120
URL_CHARACTERS = 1_000

_FENCE = re.compile("`{2,}")
_SIGNS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_IN_ADDRESS = str.maketrans({"&": "&amp;", "<": "%3C", ">": "%3E", "|": "%7C"})


def mrkdwn(text: str, limit: int = TEXT_CHARACTERS) -> str:
    """Return foreign text as one line that Slack shows as it is."""
    return _FENCE.sub("`", line(text, limit)).translate(_SIGNS)


def answer_text(answer: Answer, link: Link) -> str:
    """Return an answer in Slack's markup; of usual passages it has some 2,000 characters, and Slack takes 40,000."""
    return "\n".join(_lines(answer, link))


def _lines(answer: Answer, link: Link) -> Iterator[str]:
    numbers = {item.chunk_id: number for number, item in enumerate(answer.items, 1)}
    if answer.answerable.words:
        yield mrkdwn(answer.answerable.words)
    for sentence in answer.extract:
        yield f"> {mrkdwn(sentence.text)} [{numbers[sentence.chunk_id]}]"
    for conflict in answer.conflicts[:CONFLICTS_SHOWN]:
        yield from _conflict(conflict, link)
    if (left := len(answer.conflicts) - CONFLICTS_SHOWN) > 0:
        yield f"and {counted(left, 'more conflict')}"
    if answer.items:
        yield "*Passages*" if answer.extract else "*No sentence answers by itself. The nearest passages*"
    elif not answer.answerable.words:
        yield "Nothing was found."
    for item in answer.items:
        linked = _linked(link(item.chunk_id, item.citation.url), title_of(item))
        yield f"{numbers[item.chunk_id]}. {linked} · {mrkdwn(item.domain)}"
    for gap in answer.recalled.coverage_gaps:
        yield f"Not searched: {mrkdwn(gap.name)}: {mrkdwn(gap.reason)}"


def _conflict(conflict: ConflictRecord, link: Link) -> Iterator[str]:
    yield f"*Sources disagree:* {mrkdwn(conflict.explanation)}"
    for side in conflict.sides:
        said = f": “{mrkdwn(side.fact.statement)}”" if side.fact else ""
        yield f"• {side.role}: {_linked(link(side.chunk_id, side.citation.url), side.citation.source_path)}{said}"
    yield f"{'because' if conflict.resolved_to else 'Unresolved'}: {mrkdwn(conflict.reason)}"


def _linked(url: str, title: str) -> str:
    """Return a link; the title alone where there is no address, or one that is too long."""
    shown = mrkdwn(title, TITLE_CHARACTERS)
    return f"<{url.translate(_IN_ADDRESS)}|{shown}>" if 0 < len(url) <= URL_CHARACTERS else shown
