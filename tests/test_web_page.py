"""Tests the page of a cluster in a real browser. As a program it takes a picture of the page: test_web_page.py --screenshot FILE"""

import argparse
import re
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from browser import Browser
from cluster import Nodes, Started, until
from identity import TOKENS, write_tokens
from watching import Crawling, get
from selenium.webdriver.common.keys import Keys

HOSTILE = "<img src=x onerror=document.title='owned'>"
NUMBERS = np.random.default_rng(2).normal(size=500_000)


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def nodes(clusters):
    nodes = clusters(Nodes, nodes=3)
    nodes.put("/numbers", NUMBERS.tobytes(), "--stripe", "64KiB")
    return nodes


@pytest.fixture
def page(browser, nodes):
    """The page of idle nodes. At the end there must be no errors on the console."""
    browser.size(1280, 900)
    browser.open(nodes.entry)
    browser.until_rows("nodes", lambda rows: len(rows) == 3, "three nodes")
    yield browser
    behaved(browser, nodes)


def behaved(browser, nodes, allowed=()):
    """Asserts that the console has no errors, and that only this node got requests."""
    said, asked = browser.logs()
    assert [text for text in said if not any(words in text for words in allowed)] == []
    assert asked and {url for url in asked if not url.startswith(f"http://{nodes.entry}/")} == set()


def first_lines(row):
    return [cell.splitlines()[0] if cell else "" for cell in row]


def test_all_nodes_are_shown(page, nodes):
    addresses = nodes.addresses()
    for number, row in enumerate(page.rows("nodes")):
        assert row[0] == f"{number}\n{addresses[number]}"
        cells = first_lines(row)
        assert cells[1] == "answers" and re.fullmatch(r"\d+ %", cells[2]), row
        assert re.fullmatch(r"\d+\.\d", cells[3]) and cells[4:7] == ["0.0 s", "0", "0"], row
    assert page.text("#summary").startswith("3 of 3 nodes answer, 0 active requests, ")
    assert page.rows("requests") == [["No active requests."]]
    assert page.text("#banner") == "" and page.text("#asks") == ""


def test_those_who_do_not_see_it_are_told(page):
    """Headers belong to columns and rows, bars have a text, and news is announced."""
    assert page.script("return document.querySelectorAll('thead th:not([scope=col])').length") == 0
    assert page.script("return document.querySelectorAll('#nodes tbody th[scope=row]').length") == 3
    assert page.find("#banner").get_attribute("aria-live") == "polite"
    said = page.find("#nodes .bar").get_attribute("aria-label")
    assert re.fullmatch(r"\d+ % used: active requests \d+ %, everything else \d+ %", said), said
    assert page.script("return document.documentElement.lang") == "en"


def test_bytes_not_moved_grow(page, nodes):
    def folded():
        rows = [row for row in page.rows("kernels") if row[0] == "sum"]
        return rows[0][3] if rows else "0 B"

    before = folded()
    nodes.grist.ok("run", "sum", nodes.url("/numbers"), "--type", "f64", "--place", "storage")
    until(lambda: folded() != before, "the kernel has folded more")
    assert folded() == page.text("#kept .sum") == "3.81 MiB"
    assert page.text("#moved .sum").split()[1] in ("B", "KiB"), page.text("#moved")
    nodes.get("/numbers")
    until(lambda: page.text("#moved .sum").endswith("MiB"), "what was read has moved")
    assert folded() == page.text("#kept .sum") == "3.81 MiB"
    assert re.fullmatch(r"[\d.]+ [KMG]?i?B/s", page.text("#kept .rate"))
    until(lambda: page.find("#kept .line").get_attribute("d").count("L") > 2, "a curve is drawn")


def test_requests_come_change_their_place_and_go(browser, nodes_of_test):
    with Crawling(nodes_of_test) as crawling:
        browser.size(1280, 900)
        browser.open(crawling.nodes.entry)
        [*running, last] = [crawling.ask(name=HOSTILE) for _ in range(7)]
        wanted = ["node 1\nrunning"] * 6 + ["node 1\nwaiting"]
        rows = browser.until_rows(
            "requests", lambda rows: sorted(row[2] for row in rows if len(row) > 2) == wanted, "6 run, one waits"
        )
        assert {tuple(row[n] for n in (1, 4, 5)) for row in rows} == {("sum", "anonymous", HOSTILE)}
        assert all(row[3].endswith("of 781 KiB") for row in rows)
        assert first_lines(browser.rows("nodes")[1])[5:7] == ["6", "1"]
        number = next(row[0] for row in rows if row[2].endswith("waiting"))
        for request in running:
            request.let_go()
        [row] = browser.until_rows("requests", lambda rows: len(rows) == 1, "one is left")
        assert (row[0], row[2]) == (number, "node 1\nrunning")
        last.let_go()
        browser.until_rows("requests", lambda rows: rows == [["No active requests."]], "none is left")
        [kernel] = browser.until_rows("kernels", lambda rows: rows[0][1] == "7", "seven have ended")
        assert kernel[:3] == ["sum", "7", "0"]
        # A larger request is handed back at once if its client can do the work.
        crawling.ask("/many", name=HOSTILE)
        [row] = browser.until_rows("requests", lambda rows: len(rows[0]) > 2, "it is handed back")
        assert row[2].startswith("at the asker\nhanded back by node 1: the node has 1 active requests")
        assert row[5] == HOSTILE
        # The name of a client is shown as text, never as HTML.
        assert browser.driver.title == "Gristmill"
        assert browser.script("return document.querySelectorAll('td img, th img').length") == 0
        behaved(browser, crawling.nodes)


def test_nodes_that_die_are_shown(browser, nodes_of_test):
    nodes = nodes_of_test(Nodes, nodes=3)
    browser.open(nodes.entry)
    browser.until_rows("nodes", lambda rows: len(rows) == 3, "three nodes")
    nodes.kill(2)
    rows = browser.until_rows("nodes", lambda rows: rows[2][1].startswith("does not answer"), "one is dead")
    assert "last heard of" in rows[2][1] and nodes.listen[2] in rows[2][1]
    assert first_lines(rows[1])[1] == "answers" and "2 of 3 nodes answer" in browser.text("#summary")
    nodes.start(2)
    browser.until_rows("nodes", lambda rows: rows[2][1].startswith("answers"), "it answers again")
    nodes.kill(0)
    until(lambda: "Asking again in" in browser.text("#banner"), "the banner says that the entry node is silent")
    assert len(browser.rows("nodes")) == 3, "what was known stays"
    nodes.start(0)
    until(lambda: browser.text("#banner") == "", "it answers again", 60)
    behaved(browser, nodes, allowed=("net::ERR_",))


def test_a_token_is_asked_for_and_kept_nowhere(browser, nodes_of_test, tmp_path):
    args = ("--tokens", write_tokens(tmp_path), "--require-identity")
    nodes = nodes_of_test(Nodes, nodes=2, args=args)
    browser.open(nodes.entry)
    until(lambda: "GRISTMILL_TOKEN" in browser.text("#refusal"), "it asks for a token")
    assert browser.text("#cluster") == "" and browser.rows("nodes") == []
    field = browser.find("#token")
    assert field.get_attribute("type") == "password"
    for wrong, words in (("token-of-mallory-012345", "not known"), ("no token é", "ASCII")):
        field.send_keys(wrong, Keys.ENTER)
        until(lambda words=words: words in browser.text("#refusal"), f"it is told: {words}")
        assert browser.text("#cluster") == "" and field.get_attribute("value") == ""
    field.send_keys(TOKENS["alice"], Keys.ENTER)
    browser.until_rows("nodes", lambda rows: len(rows) == 2, "two nodes")
    assert browser.text("#asks") == ""
    kept = browser.script(
        "return JSON.stringify([localStorage, sessionStorage, document.cookie, location.href, document.body.outerHTML])"
    )
    assert TOKENS["alice"] not in kept
    browser.driver.refresh()
    until(lambda: browser.text("#refusal") != "", "it asks again")
    behaved(browser, nodes, allowed=("403",))


@pytest.mark.parametrize("width", [1280, 700, 400, 320])
def test_nothing_is_wider_than_the_window(page, nodes, width):
    page.size(width, 900)
    assert page.script("return document.documentElement.scrollWidth") <= width
    outside = page.script(
        "return [...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    outside = [text for text in outside if not text.startswith(("<thead", "<th ", "<tr role=\"row\"><th"))]
    assert outside == []
    # On a narrow window each cell has a label.
    named = "return getComputedStyle(document.querySelector('#nodes td:nth-child(5)'), '::before').content"
    assert page.script(named) == ('"Queue"' if width < 900 else "none")


def test_light_and_dark(page):
    colour = "return getComputedStyle(document.body).backgroundColor"
    page.scheme("light")
    light = page.script(colour)
    page.scheme("dark")
    dark = page.script(colour)
    page.scheme("light")
    assert sum(map(int, re.findall(r"\d+", light))) > 600 > 150 > sum(map(int, re.findall(r"\d+", dark)))


def test_the_page_may_use_nothing_but_its_own_node(nodes):
    script = "text/javascript"
    for path, kind in (("/", "text/html"), ("/page.css", "text/css"), ("/page.js", script), ("/table.js", script)):
        status, headers, body = get(nodes.entry, path)
        assert status == 200 and headers["Content-Type"] == f"{kind}; charset=utf-8"
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
        assert not re.search(rb"https?://(?!www\.w3\.org)", body)
    assert get(nodes.entry, "/cluster")[1]["Cache-Control"] == "no-store"


def scene(started):
    """Busy nodes for a picture of the page."""
    nodes = started(Nodes, nodes=3, args=("--active-share", "0.1", "--lanes", "1"))
    nodes.put("/numbers.f64", np.random.default_rng(3).normal(size=24_000_000).tobytes(), "--stripe", "1MiB")
    over = threading.Event()

    def again(*args):
        while not over.is_set():
            nodes.grist("run", args[0], nodes.url("/numbers.f64"), "--type", "f64", *args[1:])

    bins = ("--param", "bins=4096", "--param", "range=-6:6")
    asking = threading.Thread(target=again, args=("histogram", *bins, "--place", "storage"))
    asking.start()

    def end():
        over.set()
        asking.join()

    return nodes, end


def busy(rows):
    """Whether these requests make a useful picture."""
    places = [row[2] for row in rows if len(row) > 2]
    return 4 <= len(places) <= 12 and any("running" in place for place in places) and "asker" in places[-1]


def take_pictures(path, more):
    """Takes a picture of the page while requests run. With `more` there is also a dark one and a narrow one."""
    browser = Browser()
    with tempfile.TemporaryDirectory() as folder, Started(lambda: Path(folder)) as started:
        nodes, end = scene(started)
        try:
            browser.size(1280, 960)
            browser.open(nodes.entry)
            until(lambda: browser.find("#kept .line").get_attribute("d").count("L") > 30, "a curve is drawn", 90)
            while not any("at the asker" in row[2] for row in browser.rows("requests") if len(row) > 2):
                # The nodes are so busy that they hand the request back.
                nodes.grist.ok("run", "median", nodes.url("/numbers.f64"), "--type", "f64")
            pictures = [("", "light", 1280), ("-dark", "dark", 1280), ("-narrow", "dark", 400)]
            for name, scheme, width in pictures if more else pictures[:1]:
                browser.size(width, 960)
                browser.scheme(scheme)
                browser.until_rows("requests", busy, "requests run and one was handed back")
                browser.size(width, browser.script("return document.documentElement.scrollHeight"))
                browser.screenshot(path.with_stem(path.stem + name))
        finally:
            end()
    browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screenshot", type=Path, required=True, metavar="FILE")
    parser.add_argument("--more", action="store_true", help="take FILE-dark and FILE-narrow too")
    given = parser.parse_args()
    take_pictures(given.screenshot, given.more)
