"""How soon a browser shows an answer, and what its page costs: ``python -m lab.first_paint URL SET``.

``URL`` is that of a server of this machine (``nornweave serve``), a set a folder of judged questions. Chromium opens
the answer's page of each question, without a cache of its own. By the clock it says something on an idle machine
only: the load is printed, and the processor time that the server took.
"""

from __future__ import annotations

import json
import os
import shutil
import urllib.request
from pathlib import Path
from typing import Annotated
from urllib.parse import quote_plus, urlsplit

import numpy as np
import psutil
import typer
from playwright.sync_api import Browser, sync_playwright

from evals.judged_files import read_judgments

WIDTH, HEIGHT = 1440, 900
_TIMES = """() => {
    const [page] = performance.getEntriesByType('navigation');
    const [paint] = performance.getEntriesByName('first-contentful-paint');
    const files = [page, ...performance.getEntriesByType('resource')];
    return [page.responseEnd, paint.startTime, files.reduce((sum, file) => sum + file.decodedBodySize, 0) / 1000];
}"""


def main(
    url: Annotated[str, typer.Argument(help="Of a server of this machine.")],
    folder: Annotated[Path, typer.Argument(metavar="SET", help="A judged set.")],
    questions: Annotated[int, typer.Option(help="The first of the set.")] = 40,
    rounds: Annotated[int, typer.Option(help="After one that is not counted.")] = 3,
) -> None:
    """Print p50 and p95 of an answer's page: its last byte, first paint, bytes and sentences; and the load."""
    asked = [query.text for query in read_judgments(folder).queries[:questions]]
    process, loads = _listening_at(url), [os.getloadavg()[0]]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        _opened(browser, url, asked)
        before = _processor_s(process)
        rows = [row for _ in range(rounds) for row in _opened(browser, url, asked)]
        spent = (_processor_s(process) - before) / len(rows) * 1000
        browser.close()
    extract = [_extract_ms(url, text) for text in asked]
    loads.append(os.getloadavg()[0])
    typer.echo(
        f"{len(rows)} pages, load {loads[0]:.1f} to {loads[1]:.1f}, server {spent:.1f} ms of processor time a page"
    )
    columns = zip(("last byte, ms", "first paint, ms", "bytes, kB"), zip(*rows, strict=True), strict=True)
    for name, values in (*columns, ("sentences, ms", extract)):
        typer.echo("{}: p50 {:.1f}, p95 {:.1f}".format(name, *np.percentile(values, (50, 95))))


def _opened(browser: Browser, url: str, asked: list[str]) -> list[tuple[float, float, float]]:
    rows = []
    for text in asked:
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, bypass_csp=True)
        page = context.new_page()
        page.goto(f"{url}/?q={quote_plus(text)}", wait_until="load")
        page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
        rows.append(tuple(page.evaluate(_TIMES)))
        context.close()
    return rows


def _extract_ms(url: str, text: str) -> float:
    with urllib.request.urlopen(f"{url}/.json?q={quote_plus(text)}") as answered:  # noqa: S310
        return float(json.load(answered)["stage_latency_ms"]["extract"])


def _listening_at(address: str) -> psutil.Process:
    port = urlsplit(address).port
    for one in psutil.net_connections("tcp"):
        if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port and one.pid:
            return psutil.Process(one.pid)
    raise typer.BadParameter(f"nothing of this machine listens at {address}")


def _processor_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    typer.run(main)
