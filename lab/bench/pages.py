"""How long a reader waits for the pages: from Enter to the first results on screen, in a real browser."""

from __future__ import annotations

import shutil
import statistics
import time

import typer
from playwright.sync_api import Page, sync_playwright

QUESTIONS = (
    "what does the payment module return on errors",
    "why do we add jitter to retries",
    "HERON_KEY_PEPPER",
    "webhook retention",
)
ROUNDS = 10
# The page comes whole: the first paint that has contents has the first results.
TIMES = """
async () => {
  const paint = await new Promise((found) => {
    new PerformanceObserver((list) => list.getEntriesByName("first-contentful-paint").forEach(found))
      .observe({ type: "paint", buffered: true });
  });
  const navigation = performance.getEntriesByType("navigation")[0];
  return {
    painted: performance.timeOrigin + paint.startTime,
    answered: navigation.responseStart - navigation.requestStart,
    results: document.querySelectorAll(".result").length,
  };
}
"""


def print_pages(url: str) -> None:
    """Print the waiting times of a server that runs; without a browser say so."""
    browser_file = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_file is None:
        typer.echo("pages: no chromium on this machine")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_file, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        _ask(page, url, QUESTIONS[0])  # the first question of a process reads files
        waits = [_ask(page, url, question) for _ in range(ROUNDS) for question in QUESTIONS]
        browser.close()
    painted, answered = zip(*waits, strict=True)
    typer.echo("from Enter to the first results on screen, ms: " + _spread(painted))
    typer.echo("of it the server until its first byte, ms: " + _spread(answered))


def _ask(page: Page, url: str, question: str) -> tuple[float, float]:
    """Return the milliseconds from Enter to the results, and those that the server took."""
    page.goto(url)
    page.fill("#q", question)
    pressed = time.time() * 1000
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=*")
    times = page.evaluate(TIMES)
    if not times["results"]:
        raise typer.BadParameter(f"{url}: no results for {question!r}; serve the example corpus")
    return times["painted"] - pressed, times["answered"]


def _spread(values: tuple[float, ...]) -> str:
    ordered = sorted(values)
    return f"p50 {statistics.median(ordered):.0f}, p95 {ordered[int(len(ordered) * 0.95)]:.0f}, max {ordered[-1]:.0f}"
