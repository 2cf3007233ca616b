"""The lessons, examples/NN_*.py: how they are written. That they run, and that the solutions pass, is asserted by .ci/run, which runs each."""

import ast
import io
import runpy
from pathlib import Path

import pytest

from tests.loops import for_each

ROOM = Path(__file__).parents[2] / "examples"
LESSONS = sorted(ROOM.glob("[0-9][0-9]_*.py"))
WITH_EXERCISES = [path for path in LESSONS if int(path.name[:2]) <= 14]


def texts(lesson: Path):
    """(line, reST) of the docstring and of every comment that the gallery shows as text: those right below `# %%`."""
    source = lesson.read_text(encoding="utf-8")
    yield 1, ast.get_docstring(ast.parse(source), clean=False)
    lines = source.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("# %%"):
            end = next((k for k in range(i + 1, len(lines)) if not lines[k].startswith("#")), len(lines))
            yield i + 1, "\n".join([line[4:].strip(), *(text[2:] for text in lines[i + 1 : end])])


def test_there_are_lessons():
    assert [int(path.name[:2]) for path in LESSONS] == list(range(1, len(LESSONS) + 1))
    assert len(LESSONS) >= 24 and len(WITH_EXERCISES) == 14


@pytest.mark.by_default("08_features_and_tasks")
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_the_gallery_can_show_the_text(lesson):
    """A title with a line below it, and reST without a warning: the site is built with warnings as errors."""
    core = pytest.importorskip("docutils.core")
    title, line, *_ = ast.get_docstring(ast.parse(lesson.read_text(encoding="utf-8"))).splitlines()
    assert title.startswith(f"{int(lesson.name[:2])}. ") and line == "=" * len(title)
    assert len(title) <= 36, "the site's side bar has room for so many letters"
    for at, text in texts(lesson):
        said = io.StringIO()
        core.publish_doctree(text, settings_overrides={"warning_stream": said, "report_level": 2})
        assert not said.getvalue(), f"{lesson.name}, the text at line {at}: {said.getvalue()}"


@pytest.mark.slow
@for_each("lesson", WITH_EXERCISES, ids=lambda path: path.stem)
def test_every_exercise_is_open_and_has_a_solution_with_mistakes(lesson):
    tree = ast.parse(lesson.read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    asked = [
        mark.args[0].id
        for check in functions.values()
        for mark in check.decorator_list
        if isinstance(mark, ast.Call) and getattr(mark.func, "id", None) == "exercise"
    ]
    assert len(asked) >= 2, "two or three exercises a lesson"
    solutions = runpy.run_path(str(ROOM / "solutions" / lesson.name))
    for name in asked:
        docstring, body = functions[name].body
        assert isinstance(docstring.value.value, str) and body.value.value is ..., f"{name} is not open"
        assert callable(solutions[name]) and solutions[name].__doc__, f"{name}: the solution says why"
        assert len(solutions[name].mistakes) >= 1, f"{name}: a check that nothing fails proves nothing"
