"""The pages in a real browser, over a real engine: keys, no script, hostile documents, the login, accessibility."""

import re
from collections.abc import Iterator
from urllib.parse import quote_plus

import httpx
import pytest
from page_server import HOSTILE_NAME, WITH_AXE, Opened, check, serving
from playwright.sync_api import Page, expect

from nornweave.config import Settings

TOKEN = "s3cret"
QUESTION = "what is the webhook timeout"
ASKED = f"/?q={quote_plus(QUESTION)}"


@pytest.fixture(scope="module")
def passage(url: str) -> str:
    """The permalink of a passage of code."""
    answer = httpx.get(f"{url}/.json?q=handle_payment_error&domain=code").json()
    return f"/passages/{answer['items'][0]['chunk_id']}"


@pytest.fixture(scope="module")
def locked(corpus: Settings) -> Iterator[str]:
    with serving(corpus, NORNWEAVE_SERVICE_TOKEN=TOKEN) as address:
        yield address


def unfold(page: Page) -> None:
    """Show the results that are far below the others."""
    for tail in page.locator(".tail").all():
        tail.locator("summary").first.click()


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.id || document.activeElement.textContent"))


def test_from_a_question_to_both_sides_and_the_lines_without_a_mouse(url: str, open_page: Opened) -> None:
    page = open_page(url)
    assert focused(page) == "q"
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=*")
    expect(page.locator("#announce")).to_have_text(re.compile("passages.*conflict"))
    sides = page.locator(".conflict .side")
    expect(sides).to_have_count(2)
    assert {"10 seconds", "30 seconds", "10 s", "30 s"} >= set(page.locator(".side .value").all_inner_texts())
    assert page.locator(".conflicts").bounding_box()["y"] < page.locator(".results").first.bounding_box()["y"]  # type: ignore[index]

    page.keyboard.press("j")
    first = focused(page)
    page.keyboard.press("j")
    second = focused(page)
    assert first != second
    page.keyboard.press("k")
    assert focused(page) == first
    page.keyboard.press("Enter")
    panel = page.locator("#panel")
    expect(panel.locator(".cited").first).to_be_visible()
    assert page.url.startswith(url + ASKED[:4]) and "#passage=" in page.url
    assert page.evaluate("document.activeElement.closest('#panel') !== null"), "a reader is taken there"
    page.reload()
    expect(panel.locator(".cited").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert "#" not in page.url

    page.keyboard.press("/")
    assert focused(page) == "q"
    page.keyboard.press("Escape")
    assert focused(page) != "q"
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.get_by_label("Use keys of one letter").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    assert focused(page) != first, "letters are not for everybody"


def test_what_is_opened_beside_the_answer_keeps_the_answer_in_its_place(url: str, open_page: Opened) -> None:
    page = open_page(url + ASKED)
    unfold(page)
    link = page.locator("#r1 [data-passage]")
    link.scroll_into_view_if_needed()
    before = page.locator("#r2").bounding_box()
    link.click()
    expect(page.locator("#panel .passage")).to_be_visible()
    assert page.locator("#r2").bounding_box() == before
    page.locator("#panel .close").click()
    expect(page.locator("#panel")).to_be_hidden()
    assert page.evaluate("document.activeElement.closest('li').id") == "r1"


def test_what_is_typed_is_completed(url: str, open_page: Opened) -> None:
    page = open_page(url)
    page.locator("#q").press_sequentially("pay")
    expect(page.locator("#completions option").first).to_be_attached()
    values = page.locator("#completions option").evaluate_all("options => options.map(option => option.value)")
    assert all("pay" in value.lower() for value in values)
    page.locator("#q").fill("")
    expect(page.locator("#completions option")).to_have_count(0)


def test_an_answer_begins_with_sentences_that_lead_to_their_passages(url: str, open_page: Opened) -> None:
    page = open_page(url + ASKED)
    sentence = page.locator(".extract li").first
    expect(sentence).to_be_visible()
    sentence.locator("a.cite").click()
    assert re.search(r"#r\d+$", page.url)


def test_facets_narrow_an_answer_down_and_addresses_have_no_blanks(url: str, open_page: Opened) -> None:
    page = open_page(f"{url}{ASKED}&code.language=&top_k=10")
    assert page.url == url + ASKED
    page.locator(".facets").get_by_role("link", name="shop", exact=True).first.click()
    page.wait_for_url(re.compile(r"\.source=shop"))
    unfold(page)
    crumbs = page.locator(".result .crumbs").all_inner_texts()
    assert crumbs and all("shop" in text for text in crumbs)
    page.get_by_role("group", name="Filters in force").get_by_role("link").click()
    page.wait_for_url(re.compile(r"\?(?!.*source)"))
    page.locator("#q").fill("refund")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"\?q=refund&domain=\w+$"))


def test_what_was_asked_is_kept_in_the_browser_until_it_is_forgotten(url: str, open_page: Opened) -> None:
    page = open_page(url + ASKED)
    page.goto(url)
    page.locator("[data-recent] a").click()
    page.wait_for_url(url + ASKED)
    page.goto(url)
    page.get_by_role("button", name="Forget them").click()
    page.reload()
    expect(page.locator("[data-recent]")).to_be_hidden()


def test_below_a_path_of_another_site_scripts_ask_below_it(corpus: Settings, open_page: Opened) -> None:
    with serving(corpus, NORNWEAVE_URL="https://example.org/nw") as url:
        page = open_page(f"{url}/nw{ASKED}")
        page.locator("#r1 [data-passage]").first.click()
        expect(page.locator("#panel .passage")).to_be_visible()
        page.reload()
        expect(page.locator("#panel .passage")).to_be_visible()
        page.goto(f"{url}/nw/")
        page.locator("#q").press_sequentially("pay")
        expect(page.locator("#completions option").first).to_be_attached()
        page.locator("[data-recent] a").click()
        page.wait_for_url(f"{url}/nw{ASKED}")
        page.goto(f"{url}/nw/docs")
        expect(page.locator(".servers option")).to_have_text("/nw")


def test_a_passage_leads_back_to_its_answer_and_can_be_copied(url: str, open_page: Opened) -> None:
    page = open_page(f"{url}/?q=refund+policy&domain=documentation", permissions=["clipboard-read", "clipboard-write"])
    page.locator("#r1").get_by_role("button", name="Copy path").click()
    expect(page.locator("#announce")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()").endswith(":1")
    page.goto(f"{url}{page.locator('#r1 [data-passage]').get_attribute('href')}", referer=page.url)
    expect(page.locator("#passage mark").first).to_be_visible()
    page.get_by_role("link", name="Back to the answer").click()
    assert page.url == f"{url}/?q=refund+policy&domain=documentation"


def test_a_passage_of_a_pdf_shows_its_page(url: str, locked: str, passage: str, open_page: Opened) -> None:
    answer = httpx.get(f"{url}/.json?q=retries+belong+to+the+few+parts+of+a+payment+system&domain=research").json()
    href = f"/passages/{answer['items'][0]['chunk_id']}"
    page = open_page(url + href, **WITH_AXE)
    picture = page.locator(".sheet img")
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("img => img.naturalWidth") > 500
    assert "page 2" in picture.get_attribute("alt").lower()  # type: ignore[union-attr]
    check(page, "a passage of a PDF")
    outline = page.get_by_role("navigation", name="Outline")
    expect(outline.locator("[aria-current]")).to_have_count(1)
    outline.get_by_role("link").first.click()
    expect(page).not_to_have_url(url + href)
    expect(outline.locator("[aria-current]")).to_have_text(outline.get_by_role("link").first.inner_text())
    drawn = httpx.get(f"{url}{href}/page.png")
    assert (drawn.headers["content-type"], drawn.headers["cache-control"]) == ("image/png", "no-store")
    assert [httpx.get(address).status_code for address in (f"{locked}{href}/page.png", f"{url}{passage}/page.png")] == [
        401,
        404,
    ]


def test_an_unknown_address_asks_what_is_looked_for(url: str, open_page: Opened) -> None:
    page = open_page(f"{url}/nothing/here")
    page.get_by_label("Question").fill("payment")
    page.keyboard.press("Enter")
    expect(page.locator(".result").first).to_be_visible()
    assert httpx.get(f"{url}/nothing/here").headers["content-type"] == "application/problem+json"


def test_without_scripts_questions_filters_passages_and_judgments_work(url: str, open_page: Opened) -> None:
    page = open_page(url, java_script_enabled=False)
    page.fill("#q", "payment")
    page.click(".box button")
    expect(page.locator(".result").first).to_be_visible()
    page.click(".scope .chip.d-code")
    assert "domain=code" in page.url
    unfold(page)
    assert {text.split()[0] for text in page.locator(".result .domain").all_inner_texts()} == {"code"}
    page.click(".filters summary")
    page.click(".chip.small:has-text('typescript')")
    page.get_by_role("button", name="Apply").click()
    assert "code.language=typescript" in page.url
    expect(page.locator(".result .place").first).to_contain_text("checkout.ts")
    asked = page.url
    page.locator("#r1 .thumb").first.click()
    assert page.url == f"{asked}#r1"
    page.click("#r1 [data-passage]")
    assert "/passages/" in page.url
    expect(page.locator(".cited").first).to_be_visible()


def test_hostile_documents_are_text(url: str, open_page: Opened) -> None:
    page = open_page(url + "/?q=refund+policy+chargeback&domain=documentation&domain=research")
    unfold(page)
    said = "".join(page.locator(".results").all_inner_texts())
    for words in (HOSTILE_NAME, "<script>window.hacked=1</script>", "{{ 7 * 7 }}", "U+202E", "U+200B"):
        assert words in said, words
    places = [place for place in page.locator(".result").all() if "hacked" in place.inner_text()]
    assert len(places) >= 2
    for place in places:
        place.locator("[data-passage]").first.click()
        expect(page.locator("#panel .cited").first).to_be_visible()
        harmless(page)
    for path in page.locator(".result [data-passage]").evaluate_all("all => all.map(link => link.href)"):
        page.goto(path)
        harmless(page)
    page.goto(url + "/?q=" + quote_plus("\"><script>window.hacked=1</script>'{{7*7}}"))
    assert page.locator("#q").input_value() == "\"><script>window.hacked=1</script>'{{7*7}}"
    harmless(page)
    page.goto(url + "/conflicts?entity=" + quote_plus('"><img src=x onerror=window.hacked=1>'))
    harmless(page)


def harmless(page: Page) -> None:
    page.mouse.move(200, 400)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main :is(img:not(.sheet img), iframe, script, object, embed, style)").count() == 0
    links = page.locator("a").evaluate_all("all => all.map(link => link.protocol)")
    assert set(links) <= {"http:", "https:"}


def test_the_login_leads_to_what_was_asked_for(locked: str, open_page: Opened) -> None:
    page = open_page(locked + ASKED)
    assert page.url.startswith(f"{locked}/login?next=")
    page.get_by_label("Token").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_url(locked + ASKED)
    cookies = page.context.cookies()
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]
    page.get_by_role("button", name="Result 1 is useful").click()
    expect(page.locator("#announce")).to_have_text("Marked as useful.")
    page.locator("#r1 [data-passage]").click()
    expect(page.locator("#panel .passage")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(locked + "/login")
    page.goto(locked + "/status")
    assert page.url.startswith(f"{locked}/login")


def test_a_link_from_another_site_finds_the_session(locked: str, url: str, open_page: Opened) -> None:
    """A strict cookie does not come along with such a link; the login page asks again, by itself."""
    page = open_page(locked + "/login")
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_url(locked + "/")
    elsewhere = locked.replace("127.0.0.1", "localhost")
    page.context.route(f"{elsewhere}/elsewhere", lambda route: route.fulfill(
        content_type="text/html", body=f'<a href="{locked}/status">status</a>'))  # fmt: skip
    other = page.context.new_page()
    other.goto(f"{elsewhere}/elsewhere")
    other.click("a")
    other.wait_for_url(locked + "/status")


def test_every_page_is_accessible_in_both_themes_and_at_both_widths(
    url: str, locked: str, passage: str, open_page: Opened
) -> None:
    """WCAG 2.2 AA as far as axe-core can tell; and nothing is wider than the window."""
    page = open_page(url, **WITH_AXE)
    cited = httpx.get(f"{url}{passage}.json").json()["passage"]["citation"]
    found = f"/find?text=def&domain=code&source={cited['source_id']}&path_glob={quote_plus(cited['source_path'])}"
    for path in (
        found,
        f"/why{ASKED[1:]}",
        "/",
        f"{ASKED}&domain=code&code.language=python",
        f"{ASKED}&top_k=0",
        f"{locked}/login",
        passage,
        "/passages/gone",
        "/nothing",
        "/conflicts",
        "/quality",
        "/status",
    ):
        page.goto(path if path.startswith("http") else url + path)
        check(page, path)


def test_what_opens_on_a_page_is_accessible_too(url: str, open_page: Opened) -> None:
    page = open_page(url + ASKED, **WITH_AXE)
    for summary in page.locator("summary").all():
        summary.click()
    page.locator("#r1 [data-passage]").click()
    expect(page.locator("#panel .passage")).to_be_visible()
    check(page, "with a passage beside it")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    check(page, "with the keys")
