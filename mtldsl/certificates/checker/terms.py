"""The terms of a saved proof: formulas behind their maps and data, all numbers of which are Intervals."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.certificates.checker.function import UnsupportedFormula
from mtldsl.certificates.checker.function_formulas import FUNCTIONS
from mtldsl.certificates.checker.interval import Interval, join_intervals, product
from mtldsl.certificates.checker.loss_formulas import (
    ROW_LOSSES,
    SCALAR_LOSSES,
    CoxLossFormula,
    RowLossFormula,
    SquareRootLossFormula,
    SumLossFormula,
    WorstTaskFormula,
    scalar_loss,
)
from mtldsl.certificates.checker.proof_file import DataArrays
from mtldsl.certificates.checker.structured_formulas import LabelGraphFormula, StructuredHingeFormula

#: losses of which something has to be shown
_WITH_WITNESS = ("clique_hinge", "pairwise_log_loss", "structured_hinge", "worst_task")


class CheckedLinearMap:
    """x -> sum of coefficient * left @ x[block] @ right + offset."""

    def __init__(self, described, exact: bool):
        self.entries, self.shape, self.exact = described["entries"], tuple(described["shape"]), exact
        self.offset = None if described["offset"] is None else Interval.of(described["offset"], exact)

    def forward(self, x) -> Interval:
        total = None
        for e in self.entries:
            part = x[e["block"]]
            part = part if e["left"] is None else product(e["left"], part)
            part = part if e["right"] is None else product(part, e["right"])
            part = part if e["coefficient"] == 1.0 else part * e["coefficient"]
            total = part if total is None else total + part
        assert total is not None and total.shape == self.shape  # by the schema
        return total if self.offset is None else total + self.offset

    def add_adjoint(self, Z: Interval, into) -> None:
        for e in self.entries:
            part = Z if e["left"] is None else product(e["left"].T, Z)
            part = part if e["right"] is None else product(part, e["right"].T)
            part = part if e["coefficient"] == 1.0 else part * e["coefficient"]
            into[e["block"]] = into[e["block"]] + part

    def picked(self):
        """(block, coefficient, rows, columns) where the map picks rows and columns of one block, else None."""
        if len(self.entries) != 1:
            return None
        (e,) = self.entries
        rows, columns = picks(e["left"]), picks(e["right"], by_columns=True)
        found = rows is not None and columns is not None and e["coefficient"] != 0
        return (e["block"], e["coefficient"], rows, columns) if found else None


def as_dense(factor) -> np.ndarray:
    return np.asarray(factor.toarray() if sparse.issparse(factor) else factor, float)


def picks(factor, by_columns: bool = False):
    """The positions that a matrix of one 1 a row, or a column, picks, none twice; a slice for the identity, None for other matrices."""
    if factor is None:
        return slice(None)
    dense = as_dense(factor.T if by_columns else factor)
    ones = ((dense == 1).sum(axis=1) == 1).all() and ((dense != 0).sum(axis=1) == 1).all()
    where = dense.argmax(axis=1) if dense.size else np.zeros(0, int)
    return where if ones and len(set(where.tolist())) == len(where) else None


class CheckedLossTerm:
    """A loss with its data: a part with formulas, behind the map and the inputs."""

    def __init__(self, described, data: DataArrays, exact: bool):
        self.map, self.data, self.intercepts = (
            CheckedLinearMap(described["map"], exact),
            data,
            described["intercepts"],
        )
        self.exact, self.word = exact, described["word"]
        self.graph = self.word in ("clique_hinge", "pairwise_log_loss")
        parameters, witness = described["parameters"], described["witness"]
        _require_fit(described, data, self.map.shape, self.graph)
        coefficients = Interval.of(described["coefficients"], exact)
        if self.word in SCALAR_LOSSES:
            scalar = scalar_loss(self.word, parameters, exact)
            self.part = SumLossFormula(scalar, coefficients, data, exact)
        elif self.word == "worst_task":
            scalar = scalar_loss(parameters["of"]["word"], parameters["of"]["parameters"], exact)
            self.part = WorstTaskFormula(scalar, coefficients, data, exact, witness)
        elif self.word == "square_root_loss":
            eps = Interval.of(parameters["eps"] or 0.0, exact)
            self.part = SquareRootLossFormula(eps, coefficients, data, exact)
        elif self.word == "cox_loss":
            self.part = CoxLossFormula(coefficients, data, exact)
        elif self.word == "structured_hinge":
            self.part = StructuredHingeFormula(parameters["metrics"], coefficients, data, exact, witness)
        elif self.word in ROW_LOSSES:
            self.part = RowLossFormula(self.word, coefficients, data, exact)
        elif self.graph:
            self.part = LabelGraphFormula(self.word, parameters, coefficients, data, exact, witness)
        else:
            raise UnsupportedFormula(self.word)
        scalar = getattr(self.part, "scalar", None)
        signs = self.graph or self.word == "structured_hinge" or self.word in ROW_LOSSES
        suits = scalar.fits(data.targets) if scalar else not signs or np.isin(data.targets, (-1.0, 1.0)).all()
        if not suits:
            raise UnsupportedFormula(f"{self.word} with labels that it is not defined for")
        if data.sample_weights is not None and not (data.sample_weights > 0).all():
            raise UnsupportedFormula(f"{self.word} with a sample weight that is not positive")
        given = described["multipliers"]
        self.u = Interval.of(np.zeros(len(data.targets)) if given is None else given, exact)

    def scores(self, W: Interval) -> Interval:
        """X_i w_i, flat."""
        return scores_of(self.data, W, all_rows=self.graph)

    def effect(self, name: str) -> np.ndarray | None:
        """Roughly how far every entry of a block moves predictions, squared; None of a block that it is not of."""
        data = self.data
        squares = _squared(data.inputs)
        if data.shared:
            of_inputs = np.repeat(np.asarray(squares.sum(axis=0)).reshape(-1, 1), self.map.shape[1], axis=1)
        else:
            of_inputs = np.stack(
                [np.asarray(squares[rows].sum(axis=0)).ravel() for rows in data.rows], axis=1
            )
        total = data.counts[None, :].astype(float) if name in self.intercepts else None
        for e in self.map.entries:
            if e["block"] == name:
                part = of_inputs if e["left"] is None else _squared(e["left"]).T @ of_inputs
                part = part if e["right"] is None else part @ _squared(e["right"]).T
                part = part * e["coefficient"] ** 2
                total = part if total is None else total + part
        return total

    def predictions(self, x) -> Interval:
        z = self.scores(self.map.forward(x))
        for name in self.intercepts:
            z = z + x[name][0].repeat(self.data.counts)
        return z

    def add_adjoint(self, u: Interval, into) -> None:
        data = self.data
        if data.shared:
            if data.mask is not None and not self.graph:
                full = u.like(np.zeros(data.mask.size))
                u_table = full.with_entries(data.mask.T.ravel(), u)
            else:
                u_table = u
            image = product(data.inputs.T, u_table.reshape(-1, data.inputs.shape[0]).T)
        else:
            image = join_intervals(
                product(data.inputs[rows].T, u[rows]).reshape(1, -1) for rows in data.rows
            ).T
        self.map.add_adjoint(image, into)
        for name in self.intercepts:
            into[name] = into[name] + u.sums(data.starts).reshape(1, -1)


def scores_of(data: DataArrays, W: Interval, all_rows: bool = False) -> Interval:
    """X_i w_i, flat; of the rows with a label, or of all that tasks share."""
    if data.shared:
        flat = product(data.inputs, W).T
        kept = slice(None) if data.mask is None or all_rows else data.mask.T.ravel()
        return flat.reshape(-1)[kept]
    return join_intervals(product(data.inputs[rows], W[:, i]) for i, rows in enumerate(data.rows))


def _squared(A):
    return A.multiply(A).tocsr() if sparse.issparse(A) else np.square(A)


def _require_fit(described, data: DataArrays, shape: tuple, graph: bool) -> None:
    """ValueError where the sizes of a loss are not those of its data: nothing is broadcast, and no multiplier is left over."""
    data.require_layout()
    word, m, N = described["word"], len(data.counts), len(data.targets)
    columns = m
    if graph:
        columns = 2 * m + sum(
            2 ** len(clique) for clique in described["parameters"]["members"] if len(clique) <= m
        )
    sizes = {
        "a map": (shape, (data.inputs.shape[1], columns)),
        "coefficients": (described["coefficients"].shape, (1 if graph else m,)),
    }
    if described["multipliers"] is not None:
        sizes["multipliers"] = described["multipliers"].shape, (N,)
    for what, (own, wanted) in sizes.items():
        if own != wanted:
            raise ValueError(f"{word} has {what} of the shape {own}, and its data ask for {wanted}")
    if (graph and described["intercepts"]) or (
        described["witness"] is not None and word not in _WITH_WITNESS
    ):
        raise ValueError(f"{word} has an intercept or a witness, and there is none of this loss")
    if not graph and not (data.counts > 0).all():
        raise ValueError(f"{word} of a task without labels")


class CheckedFunctionTerm:
    def __init__(self, described, exact: bool):
        word, self.map = described["word"], CheckedLinearMap(described["map"], exact)
        if word not in FUNCTIONS:
            raise UnsupportedFormula(word)
        self.c = Interval.of(described["coefficient"], exact)
        self.part = FUNCTIONS[word](described["parameters"], self.map.shape, exact)
        given = described["multipliers"]
        self.v = Interval.of(np.zeros(self.map.shape) if given is None else given, exact)
