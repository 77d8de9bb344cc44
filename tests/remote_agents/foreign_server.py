"""A server of somebody else, as a process: it answers a recall as a file says, and writes down what it was asked.

``python foreign_server.py FOLDER``: prints its URL; ``FOLDER/mode`` holds how it answers, ``FOLDER/asked`` what it was
asked, a JSON document a line.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER = Path(sys.argv[1])
HANGS_S = 240.0
ITEMS = [
    {"chunk_id": "foreign-1", "content": "Invoices are archived in the vault for ten years.", "score": 12.5},
    {"chunk_id": "foreign-2", "content": "The vault is emptied by night.", "score": 7.0},
    {"chunk_id": "foreign-3", "content": "Nobody knows the vault.", "score": 1.5},
]
ANSWER = {"agent_id": "whoever", "domain_id": "documentation", "items": ITEMS}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with (FOLDER / "asked").open("a") as file:
            asked = {"path": self.path, "body": body, "headers": {k.lower(): v for k, v in self.headers.items()}}
            file.write(json.dumps(asked) + "\n")
        mode, _, argument = (FOLDER / "mode").read_text().partition(" ")
        getattr(self, mode)(argument)

    def answer(self, _: str) -> None:
        self._send(200, json.dumps(ANSWER).encode())

    def heed(self, _: str) -> None:
        self._send(200, json.dumps(ANSWER).encode(), ("nornweave-viewer-groups", "heeded"))

    def slow(self, seconds: str) -> None:
        time.sleep(float(seconds))
        self.answer("")

    def hang(self, _: str) -> None:
        time.sleep(HANGS_S)

    def drip(self, _: str) -> None:
        self.send_response(200)
        self.send_header("content-length", "100000")
        self.end_headers()
        for _each in range(int(HANGS_S)):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.2)

    def garbage(self, _: str) -> None:
        self._send(200, b"\xff\xfe<html>")

    def half(self, _: str) -> None:
        self._send(
            200, json.dumps({"agent_id": "x", "domain_id": "documentation", "items": [{"score": "high"}]}).encode()
        )

    def domain(self, name: str) -> None:
        self._send(200, json.dumps({**ANSWER, "domain_id": name}).encode())

    def oversized(self, _: str) -> None:
        self._send(200, b" " * (9 << 20) + json.dumps(ANSWER).encode())

    def many(self, _: str) -> None:
        items = [{**ITEMS[0], "chunk_id": f"chunk-{place}", "content": f"Item {place}."} for place in range(500)]
        self._send(200, json.dumps({**ANSWER, "items": items}).encode())

    def redirect(self, target: str) -> None:
        self._send(307, b"", ("location", target))

    def status(self, code: str) -> None:
        self._send(int(code), b"{}")

    def link(self, url: str) -> None:
        item = {**ITEMS[0], "citation": {"url": url, "domain_id": "code", "source_path": "vault.md"}}
        self._send(200, json.dumps({**ANSWER, "items": [item]}).encode())

    def claim(self, items: str) -> None:
        self._send(200, json.dumps({**ANSWER, "items": json.loads(items)}).encode())

    def _send(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (("content-type", "application/json"), ("content-length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
