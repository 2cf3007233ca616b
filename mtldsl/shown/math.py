"""Formulas in HTML: MathML, which browsers draw without fonts or scripts from elsewhere."""

from __future__ import annotations

__all__ = ["mathml", "text_latex"]

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
