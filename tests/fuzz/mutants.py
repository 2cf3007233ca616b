"""Problem files that a stranger may have written: seeds that are right, changed by their bytes, their values or their expressions."""

import os
import random
import re
from pathlib import Path

import numpy as np

_LOW_RANK = '[data]\ndataset = "low_rank"\nn_tasks = 3\nn_samples = 12\nn_features = 4\nrandom_state = 0\n'

#: every table of a problem file
ALL_TABLES = (
    """title = "All tables"
minimize = '''
    lam * squared_loss(L + S, tasks)   # both parts
    + trace_norm(L) + mu*l1_norm(S) + graph_laplacian(L, G)
'''
subject_to = ["L <= upper", 'S[rows, "task0"] >= -1']
"""
    + _LOW_RANK
    + """standardize = true
[split]
test_size = 0.25
random_state = 7
[weights]
L = {intercept = true}
S = {}
[parameters]
lam = 2
mu = 0.5
[arrays]
G = {path = "graph.npz", name = "laplacian"}
upper = "upper.csv"
rows = [0, 2]
[solve]
solver = "admm"
tol = 1e-5
max_iter = 5_000
max_seconds = 30
relaxation = 1.5
[check]
tol = 1e-4
solver = "scs"
max_size = inf
random_state = 3
[output]
solution = "w.npz"
report = "r.html"
"""
)

SEEDS = [
    'minimize = "squared_loss(W, tasks) + l1_norm(W)"\n' + _LOW_RANK,
    ALL_TABLES,
    """minimize = "sum_of_squares(W, tasks) + matrix_normal(W, Sigma1, Sigma2, eta=10)"
subject_to = ["Sigma1 >> 0.01", "Sigma1 << 100", "Sigma2 >> 0.01", "Sigma2 << 100"]
"""
    + _LOW_RANK
    + """[learned]
Sigma1 = "FeaturePrecision"
Sigma2 = "TaskPrecision"
[solve]
tol = 1e-6
starts = 2
random_state = 1
""",
    """minimize = "C * hinge_loss(W, tasks) + mkl_norm(W, [tree(parents), laplacian(L, gamma=2)], theta)"
subject_to = ["p_norm(theta, 2) <= 1"]
[data]
path = "exams.csv"
task = "school"
labels = "passed"
binary = true
[learned]
theta = "KernelWeights"
[parameters]
C = 0.1
[groups]
parents = {North = "all", East = "all", West = "all"}
[arrays]
L = [[1, -1, 0], [-1, 1, 0], [0, 0, 0]]
[solve]
solver = "dual_ascent"
checkpoint = "c.npz"
""",
    """minimize = "clique_hinge(U, V, tasks) + lam * ridge(U) + lam * half_squared_group_norm(V)"
[data]
dataset = "label_graph"
n_labels = 3
n_features = 3
edges = [[0, 1]]
n_train = 20
n_test = 1
random_state = 9
[weights]
U = "NodeWeights"
V = {kind = "EdgeWeights", edges = [["y0", "y1"]]}
[parameters]
lam = 0.02
""",
    """model = "NC-CMTL"
[data]
path = "exams.csv"
labels = ["passed", "hours"]
features = ["age"]
[parameters]
mu = 3.0
[output]
report = "r.json"
""",
    """title = "Metrics"
minimize = "l21_norm(W) + C * structured_hinge(W, tasks, metric=FScore(beta=2)) + 0.1 * quantile_loss(W, tasks, 0.5)"
subject_to = ["W.sum(axis=0) == 1", "W[0:2, :] >= -1", "l1_norm(W) <= 5"]
[data]
path = "signs.npz"
[parameters]
C = 3
[groups]
pairs = "pairs.csv"
""",
]

_NUMBERS = (
    *("0", "-1", "1", "0.5", "1e-320", "1e308", "1e400", "-1e400", "nan", "inf", "-inf", "true", '""', "[]", "{}"),
    *("9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 400, "9" * 5000),
    *("0x" + "f" * 400, "1." + "3" * 400, "1979-05-27", "1979-13-45", "07:32:00", "1_000", "[1, 2]", '"x"', "[[1], [2, 3]]"),
    *("4398046511104", "1e18", "-4398046511104", "1e-9", "[nan]", "[1e400]", "{a = 1}", "[[[[[]]]]]"),
)  # fmt: skip
#: Changes after which many a file is still a model.
_MILD_NUMBERS = (
    "0", "1", "2", "3", "-1", "0.5", "0.1", "10", "1e-9", "1e-3", "1e3", "1e6", "1e12", "1e30", "1e-30",
    "7", "0.999",
)  # fmt: skip
_MILD_WORDS = (
    *("l1_norm", "l21_norm", "trace_norm", "ridge", "frobenius_norm", "l12_norm", "l1_inf_norm", "log_rank", "squared_trace_norm"),
    *("squared_loss", "sum_of_squares", "absolute_loss", "huber_loss", "square_root_loss", "squared_hinge_loss", "logistic_loss"),
    *("mean_regularizer", "hinge_loss", "poisson_loss", "rank"),
)  # fmt: skip
_TEXTS = (
    *("", " ", "tasks", "W", "inf", "lambda", "__class__", "../w.npz", "/tmp/w.npz", "a\\u0000b", "a\\u001b[2Jb", "x" * 300),
    *("/dev/zero", "/dev/stdin", ".", "inside", "loop.npz", "pipe.csv", "link.npz", "exams.csv", "graph.npz", "é", "\\u202etxt", "a\\nb"),
    *("squared_loss(W, tasks)", "W >= 0", "auto", "cvxpy", "alternating", "[bold]x[/red]", "<script>", "csv", "mat", "stored"),
)  # fmt: skip
_KEYS = ("path", "dataset", "n_tasks", "format", "task", "labels", "tol", "solver", "starts", "W", "theta", "folder", "lam", "n_labels")  # fmt: skip
_WORDS = (
    *("W", "U", "V", "tasks", "lam", "inf", "None", "True", "-1", "0", "1e400", "9" * 400, "2**9", "[1, 2]", "[[W]]", "'a'", "()"),
    *("l1_norm", "trace_norm", "hinge_loss", "poisson_loss", "log_rank", "mkl_norm", "tree", "union", "FScore", "AUC()", "rank"),
    *("W[0]", "W[-9]", "W[0:0]", "W[[0, 0]]", "W['x']", "W.sum(axis=0)", "W.T", "W.sum()", "parents", "L", "rows", "Sigma1", "theta"),
    *("+", "-", "*", "/", "@", ">=", "<=", "==", ">>", "<<", "<", "(", ")", "[", "]", ",", ":", ".", "=", "#", "lambda", "if", "é", "ﬁ"),
    *("squared_loss(W, tasks)", "l1_norm(W) <= 3", "graph_laplacian(W, L)", "mean_regularizer(W)", "total_variation(W)", "1 / 0"),
    *("capped_trace_norm(W, 1, eps=.01)", "columns_on_simplex(W)", "group_norm(W, [[0], [1]])", "kronecker_ridge(W, L, L)"),
)  # fmt: skip
_ODD = ("\0", "\x1b[31m", "\r", "\x85", "\u202e", "\u2028", "\ufeff", "\U0010ffff", "'''", '"""', "\\", "=", "[", "]]", "{", "#", ".", "\t", "’")  # fmt: skip


def mutant(seed: int) -> bytes:
    """The bytes of one file."""
    draw = random.Random(seed)
    text = draw.choice(SEEDS)
    if draw.random() < 0.4:
        for _ in range(draw.choice((1, 2, 4))):
            text = draw.choice((_mild_numbers, _mild_words))(draw, text)
        return text.encode()
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        ways = (_numbers, _texts, _expressions, _expressions, _lines, _keys, _deep, _characters)
        text = draw.choice(ways)(draw, text)
    data = text.encode("utf-8", "surrogatepass")
    return _bytes(draw, data) if draw.random() < 0.15 else data


def _replaced(draw, text: str, pattern: str, pieces) -> str:
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    match = draw.choice(found)
    return text[: match.start()] + draw.choice(pieces) + text[match.end() :]


def _numbers(draw, text):
    return _replaced(draw, text, r"(?<![\w.\"])-?\d[\d_.e-]*|true|inf", _NUMBERS)


def _mild_numbers(draw, text):
    return _replaced(draw, text, r"(?<![\w.\"])\d[\d_.e-]*", _MILD_NUMBERS)


def _mild_words(draw, text):
    return _replaced(draw, text, "|".join(rf"\b{word}\b" for word in _MILD_WORDS), _MILD_WORDS)


def _texts(draw, text):
    return _replaced(draw, text, r'"[^"\n]*"', [f'"{piece}"' for piece in _TEXTS])


def _expressions(draw, text):
    """A word or an operator inside the text of the model is another."""
    whole = re.search(r"minimize = ('''(?:.|\n)*?'''|\".*?\")|subject_to = \[.*\]", text)
    if whole is None:
        return text
    start, end = whole.span()
    kept = whole[0].index("=") + 2
    inside = _replaced(draw, whole[0][kept:], r"\w+|[+*/@<>=-]+|[()\[\],.]", _WORDS)
    return text[: start + kept] + inside + text[end:]


def _lines(draw, text):
    """A line is lost, said twice, or moved; or comes from another file."""
    lines = text.split("\n")
    at = draw.randrange(len(lines))
    what = draw.randrange(4)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines.insert(at, lines[draw.randrange(len(lines))])
    elif what == 2:
        lines.insert(draw.randrange(len(lines)), lines.pop(at))
    else:
        lines.insert(at, draw.choice(draw.choice(SEEDS).split("\n")))
    return "\n".join(lines)


def _keys(draw, text):
    others = [*_KEYS, "a.b", '"a b"', "a" + ".a" * draw.choice((3, 50, 20_000)), '""', "1"]
    return _replaced(draw, text, r"(?m)^\w+(?= =)", others)


def _deep(draw, text):
    """One value, or one expression, many times inside itself, or very long."""
    n = draw.choice((3, 45, 250, 5000))
    nested = [
        "[" * n + "]" * n,
        "[" * n,
        "{a=" * n + "1" + "}" * n,
        f'"{"(" * n}W{")" * n}"',
        f'"{"-" * n}W"',
    ]
    long = [f'"{"W + " * n}W"', f'"{"x" * 20 * n}"', "1" * n, f"[{'1, ' * n}]", f'"l1_norm({"W@" * n}W)"']
    piece = draw.choice([draw.choice(nested), *long])
    return _replaced(draw, text, r'(?<== )(?:"[^"\n]*"|[\w.]+)$|(?<== )"[^"\n]*"', [piece])


def _characters(draw, text):
    at = draw.randrange(len(text))
    return text[:at] + draw.choice(_ODD) * draw.choice((1, 1, 3)) + text[at + draw.choice((0, 1)) :]


def _bytes(draw, data: bytes) -> bytes:
    at = draw.randrange(len(data))
    what = draw.randrange(5)
    if what == 0:
        return data[:at]
    if what == 1:
        return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
    if what == 2:
        return data[:at] + draw.randbytes(draw.choice((1, 8, 200))) + data[at:]
    if what == 3:
        return data[:at] + data[draw.randrange(len(data)) :]
    return b"\xef\xbb\xbf" * draw.choice((1, 2)) + data


def write_data(folder: Path) -> None:
    """What the seeds name; and a loop of links, a pipe, and a link that leads outside."""
    draw = np.random.default_rng(0)
    np.savez(folder / "graph.npz", laplacian=[[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]], other=[1.0])
    np.savetxt(folder / "upper.csv", np.full((4, 3), 2.5), delimiter=",")
    signs = np.where(draw.normal(size=(12, 2)) > 0, 1.0, -1.0)
    np.savez(folder / "signs.npz", X=draw.normal(size=(12, 3)), Y=signs)
    answers = ("1.5,16,1", "2,17,0", "3,16,1")
    rows = [f"{school},{answer}" for school in ("North", "East", "West") for answer in answers]
    (folder / "exams.csv").write_text("\n".join(["school,hours,age,passed", *rows]) + "\n")
    (folder / "pairs.csv").write_text("task0,a\ntask1,a\na,\n")
    for name, target in (("loop.npz", "loop.npz"), ("link.npz", "../outside.npz")):
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe.csv")
