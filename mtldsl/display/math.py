"""Formulas in HTML: MathML, which browsers draw without fonts or scripts from elsewhere; names in LaTeX."""

from __future__ import annotations

import re
from html import escape

# --------------------------------------------------------------------------------------------------------------
# The LaTeX that atoms and expressions print themselves in, as one line of Unicode for a terminal.
#
# \sum_j \log\big(1+e^{-y_{ij}({W})_j}\big)   ->   Σⱼ log(1 + exp(−yᵢⱼ(W)ⱼ))

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s+|.", re.DOTALL)

_GREEK_NAMES = "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi rho sigma tau phi chi psi omega varepsilon"
#: The letter of each command of LaTeX, without its backslash.
GREEK_LETTERS: dict[str, str] = dict(zip(_GREEK_NAMES.split(), "αβγδεζηθκλμνξρστφχψωε", strict=True))
_SYMBOLS: dict[str, str] = GREEK_LETTERS | {
    "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Sigma": "Σ", "Upsilon": "Υ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
    "sum": "Σ", "leq": "≤", "geq": "≥", "infty": "∞", "cdot": "·", "top": "⊤", "forall": "∀", "min": "min", "max": "max",
    "log": "log", "exp": "exp", "quad": "  ", "in": "∈", "|": "‖", ",": " ", ";": " ", ":": " ", "!": "", " ": " ",
    "langle": "⟨", "rangle": "⟩", "times": "×", "circ": "∘", "odot": "⊙", "succeq": "⪰", "preceq": "⪯", "ell": "ℓ", "{": "{", "}": "}",
}  # fmt: skip
#: Commands that change the size or the face of what follows, which a terminal cannot.
_IGNORED = {
    "big",
    "Big",
    "bigl",
    "bigr",
    "left",
    "right",
    "displaystyle",
    "mathbf",
    "mathrm",
    "operatorname",
    "text",
}

_LOW: dict[str, str] = dict(
    zip("0123456789+-=()aehijklmnoprstuvx*", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ⁎", strict=True)
)
_HIGH: dict[str, str] = dict(zip("0123456789+-=()in⊤", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁱⁿᵀ", strict=True))
_KEPT_LOW = set(",.∞· ")  # readable on the line between small letters

_HALVES = {("1", "2"): "½", ("1", "3"): "⅓", ("1", "4"): "¼"}
#: (W)ⱼ and (zᵢ)ⱼ need no brackets; factors stand apart from what follows
_TIDY = [
    (r"\(([^\W\d_])\)(?=[ᵢⱼ])", r"\1"),
    (r"\(([^\W\d_]ᵢ)\)(?=ⱼ)", r"\1"),
    (r"([½⅓¼])(?=[A-Za-zΣ])", r"\1 "),
    (r"(Σ(?:[ᵢⱼᵣ]|_\{[^}]*\}|_.))(?=[^\s])", r"\1 "),
    (r"(?<=ⱼ)(?=[A-Za-z])", " "),
    (r" +", " "),
]
_RELATIONS = "=≤≥<>∈⪰⪯"


def to_unicode(latex: str) -> str:
    r"""One line of text.

    >>> to_unicode(r"\tfrac12\|W\|_F^2 + \lambda \, \|L + S\|_{2,1}")
    '½‖W‖_F² + λ ‖L + S‖₂,₁'
    """
    text = _LatexReader(_TOKEN.findall(latex)).line()
    for pattern, replacement in _TIDY:
        text = re.sub(pattern, replacement, text)
    return text.strip()


class _LatexReader:
    def __init__(self, tokens: list[str]):
        self.tokens, self.at = tokens, 0

    def line(self, until: str | None = None, small: bool = False) -> str:
        """Everything up to a closing brace; `small` for indices, in which operators have no space around them."""
        out = ""
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token == until:
                self.at += 1
                break
            if token in "_^":
                self.at += 1
                out = self.script(out, token)
            elif token in "+-" + _RELATIONS or token in ("\\leq", "\\geq", "\\in", "\\succeq", "\\preceq"):
                self.at += 1
                out = self.operator(out, _SYMBOLS.get(token[1:], token), small)
            else:
                out += self.piece(small)
        return out

    def operator(self, out: str, symbol: str, small: bool) -> str:
        symbol = symbol.replace("-", "−")
        before = out.rstrip()
        # after a bar that closes, as in log|A| + b, it is not a sign
        opens = before.endswith("|") and before.count("|") % 2 == 1
        is_sign = symbol in "+−" and (not before or opens or before[-1] in "([{," + _RELATIONS + "+−")
        if is_sign or small:
            self.skip_space()
            return (out if is_sign else before) + symbol
        self.skip_space()
        return f"{before} {symbol} "

    def skip_space(self) -> None:
        while self.at < len(self.tokens) and self.tokens[self.at].isspace():
            self.at += 1

    def piece(self, small: bool = False) -> str:
        """The next group, command or character."""
        token = self.tokens[self.at]
        self.at += 1
        if token == "{":
            return self.line("}", small)
        if token.isspace():
            return " "
        if not token.startswith("\\"):
            return token
        name = token[1:]
        if name in ("frac", "tfrac", "dfrac"):
            return self.fraction()
        if name in ("overline", "bar"):
            inner = self.argument()
            return (
                f"{inner}\u0304" if len(inner) == 1 else f"mean({inner.removeprefix('(').removesuffix(')')})"
            )
        if name == "sqrt":
            inner = self.argument()
            return f"√{inner}" if len(inner) == 1 else f"√({inner})"
        if name in _IGNORED:
            self.skip_space()
            return ""
        if name == "langle":
            self.skip_space()
        return _SYMBOLS.get(name, name)

    def argument(self, small: bool = False) -> str:
        self.skip_space()
        return self.piece(small).strip()

    def fraction(self) -> str:
        above, below = self.argument(), self.argument()
        if (above, below) in _HALVES:
            return _HALVES[above, below]
        above, below = (f"({part})" if re.search(r"[ /]", part) else part for part in (above, below))
        return f"{above}/{below}"

    def script(self, base: str, mark: str) -> str:
        """An index or an exponent: small letters where Unicode has them all, else _{...} or ^{...}."""
        if mark == "^" and base.endswith("e") and self.tokens[self.at] == "{":
            self.at += 1
            return f"{base[:-1]}exp({self.line('}')})"
        inner = self.argument(small=True).replace("· ", "·")
        if re.search(r"[:\[<]|'.*'", inner) and not inner.startswith("i<"):
            return f"{base}[{inner}]"  # rows and tasks picked by position or name
        if re.search(r"·,|, ?·", inner):
            return f"{base}[{inner.replace('·', ':')}]"  # a whole row or column, as it is typed
        plain = inner.replace("−", "-")
        letters, kept = (_LOW, _KEPT_LOW) if mark == "_" else (_HIGH, set())
        if all(c in letters or c in kept for c in plain):
            return base + "".join(letters.get(c, c) for c in plain)
        return f"{base}{mark}{inner}" if len(inner) == 1 else f"{base}{mark}{{{inner}}}"


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

_MATRIX_NAME = re.compile(r"(Sigma|Omega|Lambda|Theta|theta|eta|beta|gamma|Phi|Psi)(\d*)$")


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


def escape_name(name: str) -> str:
    """Return a name inside LaTeX's math mode."""
    return re.sub(r"([_#%&$])", r"\\\1", re.sub(r"[\\{}^~<>']", "", name))


def matrix_latex(name: str) -> str:
    """Return Sigma1 as \\Sigma_1, D as D, Other as \\mathrm{Other}."""
    greek = _MATRIX_NAME.match(name)
    if greek:
        index = greek[2] if len(greek[2]) < 2 else f"{{{greek[2]}}}"
        return rf"\{greek[1]}" + (f"_{index}" if index else "")
    return name if len(name) == 1 else rf"\mathrm{{{escape_name(name)}}}"


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
