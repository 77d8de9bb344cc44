"""HTTP status codes that source code answers with: as numbers, as names, as symbols."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from itertools import islice

from tree_sitter import Node

from nornweave.chunking.languages import Grammar
from nornweave.claims.code_names import name_before, surroundings
from nornweave.claims.named import Named, make_claim
from nornweave.claims.passage import Passage
from nornweave.claims.statuses import STATUS_CODES
from nornweave.claims.vocabulary import attribute_of, split_name
from nornweave.types import Claim, Span

MAX_CLIMB = 10
MAX_SPAN = 200
MAX_CODES = 100
ATTRIBUTE = "http_status"

_SPEAKS = ("status", "http", "abort", "writeheader", "head", "error(", "response")
_NUMERIC = re.compile(r"(?<![\w.$#:/-])[1-5]\d\d(?![\w.]|\s*[*/%])")
# http.StatusNotFound, status.HTTP_404_NOT_FOUND, StatusCode::NOT_FOUND, StatusCodes.Status404NotFound
_NAMED = re.compile(
    r"\b(?:(?:HTTPStatus|HttpStatus|HttpStatusCode|StatusCodes?|HTTPResponseStatus)(?:\.|::)|http\.(?=Status)|status\.(?=HTTP_))"
    r"(?:Status)?(?:HTTP_)?(?P<digits>\d{3})?_?(?P<name>[A-Za-z][A-Za-z_]{1,40})\b"
)
_SYMBOL = re.compile(r"(?:\bstatus(?:\s*:|\s*=>|\s*\(|\s)\s*|\bhead\s*\(?\s*)(?P<symbol>:[a-z_]{2,40})\b")
_BY_NAME = {status.name.replace("_", "").lower(): str(status.value) for status in HTTPStatus} | {
    "unprocessableentity": "422",
    "contenttoolarge": "413",
    "requestentitytoolarge": "413",
    "payloadtoolarge": "413",
    "imateapot": "418",
    "teapot": "418",
}
_ANSWERS = re.compile(
    r"(?:^|[.:>\s])(?:HTTPException|HttpException|HttpError|HTTPError|APIException|abort|status|sendStatus|send_status|"
    r"WriteHeader|StatusCode|http_response_code|setStatus|set_status|sendError|send_error|writeHead|head|createError|"
    r"withStatus|ResponseEntity|AbortWithStatus|AbortWithStatusJSON|JSON|String|NoContent|Status|Problem|code|"
    r"setStatusCode|set_status_code|withStatusCode|Response|JSONResponse|PlainTextResponse|HTMLResponse|HttpResponse|"
    r"ResponseStatusException|ErrorResponse|RedirectResponse|redirect|HTTPStatusError)$"
)
_LAST_ARGUMENT_ANSWERS = re.compile(
    r"(?:^|[.:>\s])(?:json|Error|error|make_response|Response|send|render|jsonify|redirect|text)$"
)
_CALLS = re.compile(r"call|invocation|creation|new_expression|annotation|macro")
_ENDS = re.compile(
    r"comparison|subscript|lambda|case|match|switch|assert|body|block|^list$|array|dictionary|^set$|^object$|^hash$|"
    r"function|method_decl|class|statement_list|program|module|source_file"
)
_COMPARED_BEFORE = re.compile(r"(?:[!=]==?|[<>]=?|\b(?:case|in|is|when|not|assert\w*|expect)\b)\s*\(?\s*$")
_COMPARED_AFTER = re.compile(r"\s*(?:[!=]==?(?!>)|=>|->|<|>)")
_STRINGS = re.compile(r"[\"']([A-Za-z][^\"'\n]{3,100})[\"']")


def speaks_of_status(text: str) -> bool:
    """Tell cheaply whether a passage could answer with a status code."""
    lowered = text.lower()
    if not any(cue in lowered for cue in _SPEAKS):
        return False
    return bool(_NUMERIC.search(text) or _NAMED.search(text) or _SYMBOL.search(text))


def status_claims(passage: Passage, language: str, grammar: Grammar, root: Node) -> Iterator[Claim]:
    """Find the status codes that the code of a passage answers with; those that it compares with are none."""
    text = passage.text
    for start, end, code in islice(_candidates(text), MAX_CODES):
        node = root.descendant_for_byte_range(start, end)
        if node is None or "comment" in node.type or "string" in node.type or _compared(text, start, end):
            continue
        written = text[start:end]
        answer = _answering(node, written.isdecimal(), start, end, text, language)
        if answer is not None:
            yield _claim(passage, grammar, node, answer, Span(start, end), code)


def _candidates(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _NUMERIC.finditer(text):
        if match[0] in STATUS_CODES:
            yield match.start(), match.end(), match[0]
    for match in _NAMED.finditer(text):
        code = match["digits"] or _BY_NAME.get(match["name"].replace("_", "").lower())
        if code in STATUS_CODES and code is not None:
            yield match.start(), match.end(), code
    for match in _SYMBOL.finditer(text):
        code = _BY_NAME.get(match["symbol"].replace("_", "").lstrip(":"))
        if code is not None:
            yield match.start("symbol"), match.end("symbol"), code


def _compared(text: str, start: int, end: int) -> bool:
    return bool(_COMPARED_BEFORE.search(text, max(0, start - 20), start) or _COMPARED_AFTER.match(text, end))


def _answering(node: Node, numeric: bool, start: int, end: int, text: str, language: str) -> tuple[Node, int] | None:
    """Return what answers with the code, the value of a name or a call, and where that starts to be said."""
    current: Node | None = node
    for _ in range(MAX_CLIMB):
        if current is None:
            return None
        name = name_before(text, min(start, current.start_byte), language)
        if name is not None and _names_status(name):
            return current, text.rfind(name, 0, start)
        parent = current.parent
        if parent is None or _ENDS.search(parent.type):
            return None if numeric else (node, start)
        if _CALLS.search(parent.type) and parent.start_byte < start:
            callee = _callee(text[parent.start_byte : start])
            if not numeric or _takes_status(callee, text, start, end):
                return parent, max(parent.start_byte, text.rfind("\n", 0, start) + 1)
            return None
        current = parent
    return None


def _names_status(name: str) -> bool:
    words = split_name(name.rsplit(".", 1)[-1].rsplit("->", 1)[-1])
    return attribute_of(words) == ATTRIBUTE or words == ("status",)


def _callee(head: str) -> str:
    """Return the callee of the innermost call that is still open at the end of ``head``."""
    depth = 0
    for at in range(len(head) - 1, max(-1, len(head) - 2000), -1):
        if head[at] in ")]}":
            depth += 1
        elif head[at] in "([{":
            depth -= 1
            if depth < 0:
                return head[max(0, at - 80) : at].rstrip("! ?")
    return head.rstrip()[:80]


def _takes_status(callee: str, text: str, start: int, end: int) -> bool:
    first = text[:start].rstrip()[-1:] in {"(", ""} or callee.endswith(text[max(0, start - 20) : start].strip() or "\0")
    if _ANSWERS.search(callee) and (first or not text[:start].rstrip().endswith(",")):
        return True
    last = text[end : end + 20].lstrip(" \t\n,").startswith(")")
    return bool(_LAST_ARGUMENT_ANSWERS.search(callee)) and last and not first


def _claim(passage: Passage, grammar: Grammar, node: Node, answer: tuple[Node, int], span: Span, code: str) -> Claim:
    text = passage.text
    answering, start = answer
    around = surroundings(node, grammar, text, "")
    said = " ".join(_STRINGS.findall(text[answering.start_byte : min(answering.end_byte, answering.start_byte + 400)]))
    start += len(text[start : span.start]) - len(text[start : span.start].lstrip())
    if span.end - start > MAX_SPAN:
        start = span.start
    named = Named(name="", value=code, span=Span(start, span.end), around=around.names, remarks=said[:120])
    return make_claim(passage, named, "http_status", ATTRIBUTE, code, None, ())
