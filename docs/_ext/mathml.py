"""Formulas as MathML: browsers draw it by themselves, so that pages need no script and no font from the network."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

LOG = logging.getLogger(__name__)

#: what the converter does not know, in what it does
_SPELLED = {
    r"\arg\min": r"\operatorname{arg}\,\min",
    r"\lVert": "‖",
    r"\rVert": "‖",
    r"\Big\langle": r"\Big⟨",
    r"\Big\rangle": r"\Big⟩",
}


def mathml(node: nodes.Element, display: str) -> str:
    """The formula of a node; a command that the converter does not know stays in it with its backslash, and is a warning."""
    latex = node.astext().strip()
    for command, known in _SPELLED.items():
        latex = latex.replace(command, known)
    made = convert(latex, display=display)
    if "\\" in made:
        LOG.warning("a formula that latex2mathml does not know: %s", latex, location=node)
    return made


def visit_inline(self, node: nodes.math) -> None:
    self.body.append(f'<span class="math">{mathml(node, "inline")}</span>')
    raise nodes.SkipNode


def visit_block(self, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math" role="math" tabindex="0">{mathml(node, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
