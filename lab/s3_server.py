"""A real S3 server as a process of its own (moto's, of the development packages), with an empty bucket."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "generations"
_SERVER = """
import logging
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def s3_server() -> Iterator[int]:
    """Run the server with an empty bucket; give its port. It takes any credentials."""
    process = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        port = int(process.stdout.readline())
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("PUT", f"/{BUCKET}", headers={"x-amz-date": "20260101T000000Z"})
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"the S3 server does not make a bucket: {answer.status} {said[:200]!r}")
        yield port
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
