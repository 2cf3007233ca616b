"""The guides of docs/guides/, and the pages beside them: their sessions run as they stand, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.test_docs import ROOT, sessions

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
PAGES = [
    page
    for page in (ROOT / "docs" / name for name in ("choosing.md", "comparison.md", "faq.md"))
    if page.exists()
]


@pytest.mark.parametrize(
    "page", [page for page in GUIDES if page.name != "README.md"], ids=lambda page: page.stem
)
def test_sessions_of_the_guide_run(page):
    if page.stem == "beyond_one_machine":
        pytest.importorskip("dask.array")
    assert sessions(page) >= 10


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```pycon" in page.read_text()], ids=lambda page: page.stem
)
def test_sessions_on_the_page_run(page):
    assert sessions(page) >= 4


def anchors(page: Path) -> set[str]:
    """The headings as repository hosts and the site name them: lower case, spaces to hyphens, no other signs."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE
    )
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", [*GUIDES, *PAGES], ids=lambda page: page.stem)
def test_links_lead_to_files_and_headings(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", text):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        name, _, heading = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.name}: {target} is not there"
        if heading and file.suffix == ".md":
            assert heading in anchors(file), f"{page.name}: {target}: {sorted(anchors(file))}"


def test_every_guide_has_what_a_guide_has():
    """A problem, its certificate, what to look at, what goes wrong, and where to read on."""
    for page in GUIDES:
        if page.name != "README.md":
            headings = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
            asked = (
                "The problem",
                "The model and its certificate",
                "What to look at",
                "What goes wrong",
                "Read on",
            )
            assert all(any(heading.startswith(each) for heading in headings) for each in asked), page.name
