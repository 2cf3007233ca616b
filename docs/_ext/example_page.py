"""The page that start.md's session writes, made when the site is built: what the landing page links is what a reader's own lines make."""

from __future__ import annotations

from contextlib import chdir, redirect_stdout
from doctest import DocTestParser
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

DOCS = Path(__file__).parents[1]
START = DOCS / "start.md"

#: in the built site, beside the landing page
NAME = "example_report.html"


def session(text: str, source: str) -> dict:
    """Run the examples of a page without printing; return their names."""
    names: dict = {}
    with redirect_stdout(StringIO()):
        for example in DocTestParser().get_examples(text):
            exec(compile(example.source, source, "exec"), names)
    return names


def page() -> str:
    """The HTML that `solution.report(...)` writes at the end of the session."""
    with TemporaryDirectory() as folder, chdir(folder):
        names = session(START.read_text(encoding="utf-8"), START.name)
        return names["page"].read_text(encoding="utf-8")


def write(folder: Path) -> Path:
    """The page in a folder, made anew where it is older than the text or the package."""
    path = Path(folder) / NAME
    package = DOCS.parent / "mtldsl"
    sources = [START, *package.rglob("*.py"), *package.rglob("*.jinja")]
    if not path.exists() or path.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        path.write_text(page(), encoding="utf-8")
    return path


def setup(app) -> dict:
    """Sphinx: after all other pages."""
    app.connect("build-finished", _finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _finished(app, exception) -> None:
    if exception is None and app.builder.format == "html":
        write(app.outdir)
