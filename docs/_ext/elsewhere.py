"""Links that leave docs/: on the repository's host they open the file; on the site they open a page that is made of it.

A lesson has its page in the gallery. Other Markdown (benchmarks, the changelog) becomes a page with its own links followed; any other file
becomes a page that shows it.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = "repository"

#: pages that the navigation names, whether anything links to them or not
NAMED = ("CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md")

PICTURES = (".png", ".svg", ".gif")

_CODE = re.compile(r"^( *)(```+).*?^\1\2 *$|(`+)(?!`).+?(?<!`)\3(?!`)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()([^)\s#]+)(#[^)\s]*)?\)")
_LANGUAGES = {
    ".py": "python",
    ".toml": "toml",
    ".csv": "text",
    ".sh": "bash",
    ".json": "json",
    ".yml": "yaml",
}


def target(link: str, base: Path) -> Path | None:
    """The file of this repository that a relative link in `base` names; None for addresses on the web."""
    if re.match(r"[a-z]+:|/", link):
        return None
    path = (base.parent / link).resolve()
    if path.is_dir() and path == ROOT / "examples":
        return path
    if path.is_dir() and (path / "README.md").exists():
        path /= "README.md"
    return path if path.is_relative_to(ROOT) and path.exists() else None


def page_of(path: Path) -> str:
    """Where a file of the repository stands on the site, from its root."""
    inside = path.relative_to(ROOT)
    if path.is_relative_to(DOCS):
        return f"/{path.relative_to(DOCS)}"
    if path == ROOT / "examples":
        return "/lessons/index.rst"
    if path.suffix == ".py" and path.parent == ROOT / "examples":
        return f"/lessons/{path.stem}.rst"
    return f"/{PAGES}/{inside}" + ("" if path.suffix in (".md", *PICTURES) else ".md")


def outside_code(text: str, change) -> str:
    """`change` on what is not in code; a link's text may hold code, so that code is put aside and back."""
    kept: list[str] = []

    def aside(match: re.Match) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    return re.sub(r"\0(\d+)\0", lambda match: kept[int(match[1])], change(_CODE.sub(aside, text)))


def rewritten(text: str, base: Path, found: list[Path] | None = None) -> str:
    """Markdown with its links turned to pages of the site; the files that they name are added to `found`."""

    def turned(match: re.Match) -> str:
        path = target(match[2], base)
        if path is None:
            return match[0]
        if match[0].startswith("!"):  # a picture stands beside the page
            if found is not None and not path.is_relative_to(DOCS):
                found.append(path)
            return match[0]
        if found is not None:
            found.append(path)
        return f"{match[1]}{page_of(path)}{match[3] or ''})"

    return outside_code(text, lambda prose: _LINK.sub(turned, prose))


def shown(path: Path) -> str:
    """A page for a file that is not Markdown."""
    text = path.read_text(encoding="utf-8")
    fence = "`" * (max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2) + 1)
    language = _LANGUAGES.get(path.suffix, "text")
    return f"---\norphan: true\n---\n\n# {path.relative_to(ROOT)}\n\n{fence}{language}\n{text}{fence}\n"


def write(app: Sphinx, config) -> None:
    """The pages of all files that docs/ links to, and of those that they link to in turn."""
    found = [ROOT / name for name in NAMED]
    for page in DOCS.rglob("*.md"):
        if not page.is_relative_to(DOCS / PAGES):
            rewritten(page.read_text(encoding="utf-8"), page, found)
    written: set[Path] = set()
    while found:
        path = found.pop()
        place = DOCS / page_of(path)[1:]
        if path in written or not place.is_relative_to(DOCS / PAGES):
            continue
        written.add(path)
        if path.suffix in PICTURES:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
            continue
        if path.suffix == ".md":
            text = rewritten(path.read_text(encoding="utf-8"), path, found)
            if str(path.relative_to(ROOT)) not in NAMED:
                text = f"---\norphan: true\n---\n\n{text}"
        else:
            text = shown(path)
        put(place, text)
    places = {DOCS / page_of(path)[1:] for path in written}
    for old in (DOCS / PAGES).rglob("*.*"):
        if old not in places:
            old.unlink()


def put(place: Path, text: str) -> None:
    """Write only what changed, so that Sphinx reads only that anew."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists() or place.read_text(encoding="utf-8") != text:
        place.write_text(text, encoding="utf-8")


def turn_links(app: Sphinx, docname: str, source: list[str]) -> None:
    page = DOCS / f"{docname}.md"
    if page.exists() and not docname.startswith(f"{PAGES}/"):
        source[0] = rewritten(source[0], page)
    # doctest wants an empty line after a session's last output; in a box it looks like something that is missing
    source[0] = re.sub(r"\n\n```$", "\n```", source[0], flags=re.MULTILINE)


def setup(app: Sphinx) -> dict:
    app.add_lexer("csv", TextLexer)
    app.connect("config-inited", write, priority=100)
    app.connect("source-read", turn_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
