"""Formulas in HTML: MathML, which browsers draw without fonts or scripts from elsewhere."""

from __future__ import annotations

import re
from html import escape

__all__ = ["escaped", "mathml", "matrix_latex", "text_latex", "words_latex", "words_mathml"]

#: What LaTeX reads as commands, as it is written in text.
_SPECIAL = str.maketrans(
    {character: "\\" + character for character in "{}_&%#$"}
    | {
        character: rf"\text{name}{{}}"
        for character, name in zip(
            "\\^~|<>", ("backslash", "asciicircum", "asciitilde", "bar", "less", "greater"), strict=True
        )
    }
)

#: Names of Greek letters, with an index.
_GREEK = re.compile(r"(Sigma|Omega|Lambda|Theta|theta|eta|beta|gamma|Phi|Psi)(\d*)$")


def escaped(name: str) -> str:
    """A name inside LaTeX's math mode."""
    return re.sub(r"([_#%&$])", r"\\\1", re.sub(r"[\\{}^~<>']", "", name))


def matrix_latex(name: str) -> str:
    """Sigma1 as \\Sigma_1, D as D, Other as \\mathrm{Other}."""
    greek = _GREEK.match(name)
    if greek:
        index = greek[2] if len(greek[2]) < 2 else f"{{{greek[2]}}}"
        return rf"\{greek[1]}" + (f"_{index}" if index else "")
    return name if len(name) == 1 else rf"\mathrm{{{escaped(name)}}}"


def mathml(latex: str) -> str:
    """LaTeX's math as MathML, which screen readers read out.

    >>> mathml("x")
    '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow><mi>x</mi></mrow></math>'
    """
    from latex2mathml.converter import convert

    return convert(latex)


def text_latex(text: str) -> str:
    r"""Words inside LaTeX's text mode.

    >>> print(text_latex("a_r ||W_r|| at 50 %"))
    a\_r \textbar{}\textbar{}W\_r\textbar{}\textbar{} at 50 \%
    """
    return text.translate(_SPECIAL)


def words_latex(words: str) -> str:
    r"""Words with $LaTeX$ inside LaTeX's text mode.

    >>> print(words_latex("at 50 % of $a_r$"), words_latex("5 $"))
    at 50 \% of $a_r$ 5 \$
    """
    return "".join(f"${part}$" if math else text_latex(part) for part, math in _split(words))


def words_mathml(words: str) -> str:
    """Words with $LaTeX$ in HTML.

    >>> words_mathml("a & b")
    'a &amp; b'
    """
    return "".join(mathml(part) if math else escape(part) for part, math in _split(words))


def _split(words: str) -> list[tuple[str, bool]]:
    """(part, whether it is mathematics) in their order; dollars that do not come in pairs are dollars."""
    parts = words.split("$")
    if len(parts) % 2 == 0:
        return [(words, False)]
    return [(part, k % 2 == 1) for k, part in enumerate(parts) if part]
