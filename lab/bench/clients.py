"""Clients of a served API, in one process: reads questions as JSON from stdin, prints latencies as JSON."""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

import numpy as np


def main(url: str, clients: int) -> None:
    """Ask every question once, ``clients`` at a time, each client over a connection that it keeps."""
    texts: list[str] = json.load(sys.stdin)
    latencies: list[float] = []
    failed: list[int] = []
    threads = [
        threading.Thread(target=_ask, args=(url, texts[place::clients], latencies, failed)) for place in range(clients)
    ]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - started
    p50, p95 = np.percentile(latencies, (50, 95))
    measured = {"p50_ms": p50, "p95_ms": p95, "queries_per_s": len(texts) / elapsed, "failed": len(failed)}
    json.dump({**measured, "latencies_ms": latencies}, sys.stdout)


def _ask(url: str, texts: Sequence[str], latencies: list[float], failed: list[int]) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    for text in texts:
        started = time.perf_counter()
        connection.request("POST", "/query", json.dumps({"query": text}), {"Content-Type": "application/json"})
        with connection.getresponse() as response:
            response.read()
            if response.status != 200:
                failed.append(response.status)
        latencies.append((time.perf_counter() - started) * 1000)
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
