"""The built site in a browser: no page runs out of a phone's width, formulas and pictures have a size, search finds words, links are there."""

import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

import pytest

from tests.browser import CHROMIUM, document, harness, measured

SITE = Path(__file__).parents[2] / "build" / "site"
BUILT = (SITE / "index.html").exists()

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not BUILT, reason="no site in build/site: sphinx-build docs build/site"),
]
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

#: a page of every kind
KINDS = ("index", "example_report", "start", "words", "models", "mathematics", "solvers", "api/index", "api/mtldsl.l21_norm", "api/mtldsl.Solution",
         "api/command_line", "lessons/index", "lessons/01_ridge", "lessons/18_label_graph", "repository/benchmarks/README")  # fmt: skip


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The site as a server gives it, and beside it the page that looks at the others."""
    pages = {}

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self):
            if self.path in pages:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(pages[self.path].encode())
            else:
                super().do_GET()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=SITE))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    server.pages = pages
    server.profile = tmp_path_factory.mktemp("profile")
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def looked_at(server, pages, width, browser=0) -> list[dict]:
    """The pages, one after the other; browsers at the same time have numbers of their own."""
    frames = f"/frames_{browser}.html"
    server.pages[frames] = harness([("src", f"/{page}", width) for page in pages])
    found = measured(f"http://127.0.0.1:{server.server_port}{frames}", server.profile / str(browser))
    return [{"page": page} | one for page, one in zip(pages, found, strict=True)]


@in_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_every_kind_of_page_fits_and_has_all_its_parts(address, width):
    for found in looked_at(address, [f"{page}.html" for page in KINDS], width):
        assert found["overflow"] <= 0 and found["images"] and found["flat"] == 0 and found["title"], found
        if found["page"] in ("words.html", "mathematics.html", "api/mtldsl.l21_norm.html"):
            assert found["formulas"] >= 1, found


@in_browser
def test_no_page_runs_out_of_a_phone(address):
    pages = sorted(
        str(path.relative_to(SITE)) for path in SITE.rglob("*.html") if "_static" not in path.parts
    )
    assert len(pages) > 200
    with ThreadPoolExecutor(2) as pool:  # a core each
        shares = pool.map(lambda k: looked_at(address, pages[k::4], 390, browser=k), range(4))
        wide = [one for share in shares for one in share]
    assert len(wide) == len(pages)
    assert not [one for one in wide if one["overflow"] > 0]


@in_browser
@pytest.mark.parametrize(
    "query, page", [("trace_norm", "api/mtldsl.trace_norm.html"), ("duality gap", "mathematics.html")]
)
def test_search_finds(address, query, page):
    found = document(
        f"http://127.0.0.1:{address.server_port}/search.html?q={query.replace(' ', '+')}", address.profile
    )
    listed = re.search(r'<ul\b[^>]*class="search"[^>]*>(.*?)</ul>\s*(?:</div>|<p)', found, re.DOTALL)
    assert listed and page in re.findall(r'href="([^"#?]+)', listed[1]), found[-3000:]


def test_nothing_is_fetched_from_elsewhere():
    """A page works without a network: scripts, styles, fonts and pictures are its own."""
    fetched = re.compile(
        r'<(?:script|img|iframe)\b[^>]*\bsrc="(https?:)?//|<link\b[^>]*rel="(?:stylesheet|preload)"[^>]*href="(https?:)?//'
    )
    pages = list(SITE.rglob("*.html"))
    assert len(pages) > 200
    assert not [page for page in pages if fetched.search(page.read_text(encoding="utf-8"))]


def test_every_link_within_the_site_leads_somewhere():
    texts = {
        path: path.read_text(encoding="utf-8") for path in SITE.rglob("*.html") if "_static" not in path.parts
    }
    names = {path: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for path, text in texts.items()}
    dead, followed = [], 0
    for path, text in texts.items():
        for link in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', text):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = unquote(unescape(link)).partition("#")
            there = (path.parent / file.split("?")[0]).resolve() if file else path
            followed += 1
            if not there.exists() or (anchor and there in names and anchor not in names[there]):
                dead.append(f"{path.relative_to(SITE)}: {link}")
    assert followed > 5000
    assert not dead
