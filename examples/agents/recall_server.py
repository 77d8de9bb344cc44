"""The recall contract over HTTP for any search: the token, the body, the answer. A server has to write ``search``."""

from __future__ import annotations

import argparse
import hmac
import json
import os
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MAX_BODY = 1 << 20

Rows = list[dict[str, Any]]
"""What was found, best first: ``id, title, body, url, updated_at, score, matched`` (of all, also those not shown)."""


class EngineError(Exception):
    """The engine behind the server does not answer."""


def serve(engine: str, search: Callable[[str, int], Rows], given: argparse.Namespace) -> None:
    """Answer ``POST /recall`` of who shows ``AGENT_TOKEN``, until a signal comes.

    Args:
        engine: its name, in ids and citations.
        search: the best rows for a text, at most so many; raises ``EngineError``.
        given: ``host``, ``port`` and ``domain``.
    """
    Handler.engine, Handler.search, Handler.domain = engine, staticmethod(search), given.domain
    Handler.token = os.environ["AGENT_TOKEN"]
    server = ThreadingHTTPServer((given.host, given.port), Handler)
    sys.stdout.write(f"http://{given.host}:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


def options(description: str | None, *, port: int, table: str) -> argparse.ArgumentParser:
    """Return the options that all servers have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", default=table)
    parser.add_argument("--domain", default="documentation")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=port)
    return parser


def answer(rows: Rows, engine: str, domain: str) -> dict[str, Any]:
    """Return rows as a recall answers; without `calibrated` the scores are of any scale."""
    return {
        "agent_id": engine,
        "domain_id": domain,
        "total_searched": rows[0]["matched"] if rows else 0,
        "retrieval": {"fulltext": "ok" if rows else "empty"},
        "items": [
            {
                "chunk_id": f"{engine}-{row['id']}",
                "content": row["body"],
                "score": row["score"],
                "citation": {
                    "source_id": engine,
                    "source_path": str(row["id"]),
                    "title": row["title"],
                    "url": row["url"],
                    "timestamp": row["updated_at"],
                },
            }
            for row in rows
        ],
    }


class Handler(BaseHTTPRequestHandler):
    """``POST /recall`` of who shows the token."""

    protocol_version = "HTTP/1.1"
    timeout = 30
    engine = domain = ""
    search: Callable[[str, int], Rows]
    token = ""

    def do_POST(self) -> None:
        """Answer a recall."""
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_BODY:
            self.close_connection = True
            return self._send(413, {"detail": f"at most {MAX_BODY} bytes"})
        sent = self.rfile.read(length)
        if not hmac.compare_digest(self.headers.get("authorization", "").encode(), f"Bearer {self.token}".encode()):
            return self._send(401, {"detail": "send the token of AGENT_TOKEN"})
        if self.path != "/recall":
            return self._send(404, {"detail": "there is only /recall"})
        try:
            body = json.loads(sent)
            text, top_k, filters = str(body["query_text"]), min(int(body.get("top_k", 10)), 100), body.get("filters")
        except (ValueError, TypeError, KeyError, AttributeError):
            return self._send(422, {"detail": 'expected {"query_text": …, "top_k": …}'})
        if filters:
            return self._send(422, {"detail": "no filters are known here"})
        try:
            return self._send(200, answer(self.search(text, top_k), self.engine, self.domain))
        except EngineError as error:
            return self._send(503, {"detail": f"the engine does not answer: {error}"})

    def _send(self, status: int, document: dict[str, Any]) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
