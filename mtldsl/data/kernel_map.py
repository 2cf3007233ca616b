"""Map from rows to the features that kernels give them, for training rows and new ones; and how a file keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.data.input_checks import as_design, as_learned
from mtldsl.data.kernel_functions import INPUTS, FunctionKernel, GivenKernel, Kernel, NamedKernel
from mtldsl.data.scaling import Scaling
from mtldsl.errors import DataError, ModelError
from mtldsl.utils.files import checked_csr, require_shapes
from mtldsl.utils.memory import require_memory


@dataclass(frozen=True, eq=False)
class KernelView:
    """The features of one kernel: phi(x) = L^-1 k(x, pivots), so that <phi(x), phi(x')> = k(x, x') on the training rows.

    Entry k of phi(x) needs the first k + 1 pivots only. `kept` are the entries that were selected, None for all.
    """

    kernel: Kernel
    rows: np.ndarray | sparse.csr_array  # (r, d) the pivots; of a given kernel (r,) their positions
    triangle: np.ndarray  # (r, r) L, lower triangular: the features of the pivots
    kept: np.ndarray | None = None  # (size,) increasing

    @property
    def size(self) -> int:
        return len(self.columns)

    @property
    def columns(self) -> np.ndarray:
        """The entries of phi(x) that are features, increasing."""
        return np.arange(len(self.triangle)) if self.kept is None else self.kept

    @property
    def names(self) -> list[str]:
        return [f"{self.kernel.name}[{k}]" for k in self.columns.tolist()]

    def of_columns(self, index) -> KernelView:
        """Some of these features, `index` increasing, with the pivots that they need."""
        kept = self.columns[index]
        r = int(kept[-1]) + 1
        return KernelView(self.kernel, self.rows[:r], self.triangle[:r, :r], None if len(kept) == r else kept)

    def features(self, given) -> np.ndarray:
        """(n, r) of new rows (n, d), or of their kernel with all training rows (n, size)."""
        from scipy.linalg import solve_triangular

        if isinstance(self.kernel, GivenKernel):
            values = given[:, self.rows]
        else:
            n, training = given.shape[0], self.rows.shape[0]
            require_memory(
                8.0 * n * 4 * training, f"the kernel of {n:,} rows with {training:,} of training",
                "go part by part, such as predict(X[:1000])", DataError,
            )  # fmt: skip
            # in the layout of the training rows: not every kernel takes a sparse matrix with a dense one
            alike = sparse.csr_array if sparse.issparse(self.rows) else _as_array
            values = self.kernel(alike(given), self.rows)
        features = solve_triangular(self.triangle, values.T.astype(float), lower=True)
        return np.ascontiguousarray((features if self.kept is None else features[self.kept]).T)

    def same(self, other: KernelView) -> bool:
        return (
            self.kernel == other.kernel
            and np.array_equal(self.triangle, other.triangle)
            and np.array_equal(self.columns, other.columns)
            and sparse.issparse(self.rows) == sparse.issparse(other.rows)
            and self.rows.shape == other.rows.shape
            and (abs(self.rows - other.rows).max() == 0)
        )


@dataclass(frozen=True, eq=False)
class KernelMap:
    """x -> [phi_1(x), ..., phi_V(x)], fixed once by the rows of some tasks.

    views            {name of the kernel: slice of its columns}
    feature_names    of what goes in; `names` of what comes out, "rbf[0]"
    scaling          the statistics of `standardize()` that are applied to inputs first, or None
    """

    parts: tuple[KernelView, ...]
    feature_names: tuple[str, ...]
    scaling: Scaling | None

    @property
    def views(self) -> dict[str, slice]:
        ends = np.cumsum([0, *(view.size for view in self.parts)]).tolist()
        return {v.kernel.name: slice(a, b) for v, a, b in zip(self.parts, ends, ends[1:], strict=False)}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for view in self.parts for name in view.names)

    @property
    def given(self) -> list[str]:
        """Names of the precomputed kernels, of which new inputs say nothing."""
        return [view.kernel.name for view in self.parts if isinstance(view.kernel, GivenKernel)]

    def of_columns(self, index) -> KernelMap:
        """The map to these features. DataError where those of one kernel are torn apart or out of order: they are one range of columns."""
        ends = np.cumsum([view.size for view in self.parts])
        which, parts = np.searchsorted(ends, index, side="right"), []
        for of in np.split(np.arange(len(index)), np.flatnonzero(np.diff(which)) + 1):
            view, first = self.parts[which[of[0]]], ends[which[of[0]]] - self.parts[which[of[0]]].size
            if any(view.kernel is other.kernel for other in parts) or (np.diff(index[of]) < 0).any():
                raise DataError(
                    f"select_features: the features of kernel {view.kernel.name!r} are torn apart or out of order",
                    write_instead="select those of one kernel together, in their order",
                )
            parts.append(view.of_columns(index[of] - first))
        return KernelMap(tuple(parts), self.feature_names, self.scaling)

    def __eq__(self, other) -> bool:  # and so no hash: equal by content that arrays hold
        if not isinstance(other, KernelMap):
            return NotImplemented
        return self is other or (
            self.feature_names == other.feature_names
            and self.scaling == other.scaling
            and len(self.parts) == len(other.parts)
            and all(mine.same(theirs) for mine, theirs in zip(self.parts, other.parts, strict=True))
        )

    def transform(self, X, what: str = "transform: X") -> np.ndarray:
        """Features (n, r) of new inputs, as the user has them: not standardised.

        X : (n, d). Where kernels are precomputed, {"name": K} with K (n, training rows) for each of those, and "X": the inputs
            where there are others; K alone where it is the only kernel.
        """
        given = self._split(X, what)
        sizes = {name: part.shape[0] for name, part in given.items()}
        if len(set(sizes.values())) > 1:
            raise DataError(
                f"other numbers of rows, {sizes}",
                term=what,
                write_instead="give the same rows for all kernels",
            )
        return self.features(given.get(INPUTS), given)

    def features(self, X, given: dict[str, np.ndarray] | None = None) -> np.ndarray:
        """Features (n, r) of inputs on the scale of training, and of the values of the precomputed kernels by their names."""
        given = given or {}
        return np.hstack(
            [v.features(given[v.kernel.name] if isinstance(v.kernel, GivenKernel) else X) for v in self.parts]
        )

    def _split(self, X, what: str) -> dict[str, np.ndarray]:
        """Return what each precomputed kernel takes, by its name, and the standardised inputs for the others."""
        needed = [*self.given, *([INPUTS] if len(self.given) < len(self.parts) else [])]
        if not isinstance(X, dict):
            if len(needed) > 1:
                raise DataError(
                    f"the kernel {self.given[0]!r} is precomputed, so that inputs alone do not tell its values",
                    term=what,
                    write_instead=f"write "
                    f"{_example(needed)}, K_new its values between the new rows and all training rows",
                )
            X = {needed[0]: X}
        if X.keys() != set(needed):
            wrong = next((key for key in X if key not in needed), None)
            missing = next((key for key in needed if key not in X), None)
            problem = (
                f"{missing!r} is missing" if wrong is None else f"there is no precomputed kernel {wrong!r}"
            )
            raise DataError(f"{problem}", term=what, write_instead=f"write {_example(needed)}")
        return {key: self._checked(key, value, what) for key, value in X.items()}

    def _checked(self, key: str, value, what: str):
        what = what if key == INPUTS else f"{what}[{key!r}]"
        if key == INPUTS:
            X = as_learned(value, self.feature_names, what, "the kernels are of rows with")
            return X if self.scaling is None else self.scaling.apply(X)
        X, _ = as_design(value, what)
        given = [view.kernel for view in self.parts if isinstance(view.kernel, GivenKernel)]
        size = next(kernel.size for kernel in given if kernel.name == key)
        if X.shape[1] != size:
            raise DataError(
                f"{what} has shape {X.shape}, but the Gram matrix of training had {size} rows",
                write_instead="give k(new row, training row), a column for each row of that Gram matrix",
            )
        return _as_array(X)

    # -------------------------------------------------------------------------------------------- storage

    def stored(self) -> tuple[dict, dict[str, np.ndarray]]:
        """(plain facts, arrays). ModelError for kernels that are functions: no file holds those."""
        views, arrays = [], {}
        for k, view in enumerate(self.parts):
            kernel = view.kernel
            facts: dict[str, Any] = {"name": kernel.name}
            if isinstance(kernel, FunctionKernel):
                raise ModelError(
                    f"save: the kernel {kernel.name!r} is a function of yours, which no file can hold",
                    write_instead=f"give scikit-learn's name "
                    f'of it, ("rbf", {{"gamma": 0.1}}), or its Gram matrix, {{{kernel.name!r}: K}}',
                )
            if isinstance(kernel, NamedKernel):
                facts |= {"word": kernel.word, "parameters": kernel.parameters}
            else:
                facts |= {"size": kernel.size}
            if sparse.issparse(view.rows):
                facts["shape"] = view.rows.shape
                arrays |= {f"{k}:{part}": getattr(view.rows, part) for part in ("data", "indices", "indptr")}
            else:
                arrays[f"{k}:rows"] = view.rows
            arrays[f"{k}:triangle"] = view.triangle
            if view.kept is not None:
                arrays[f"{k}:kept"] = view.kept
            views.append(facts)
        if self.scaling is not None:
            arrays |= {"mean": self.scaling.mean, "scale": self.scaling.scale}
        return {"views": views, "feature_names": self.feature_names}, arrays

    @classmethod
    def restored(cls, facts: dict, arrays: dict[str, np.ndarray]) -> KernelMap:
        """Return what `stored` gave. ValueError where its parts do not belong together."""
        names = tuple(facts["feature_names"])
        views = tuple(_view(k, view, arrays, len(names)) for k, view in enumerate(facts["views"]))
        scaling = Scaling(arrays["mean"], arrays["scale"]) if "mean" in arrays else None
        if scaling is not None:
            require_shapes(mean=(scaling.mean, (len(names),)), scale=(scaling.scale, (len(names),)))
        return cls(views, names, scaling)


def _view(k: int, facts: dict, arrays: dict[str, np.ndarray], d: int) -> KernelView:
    """The view number k of a file."""
    triangle, kept = arrays[f"{k}:triangle"], arrays.get(f"{k}:kept")
    require_shapes(triangle=(triangle, (None, len(triangle))))
    if not triangle.diagonal().all():
        raise ValueError("triangle is singular")
    if kept is not None:
        require_shapes(kept=(kept, (None,)))
        bounds = np.concatenate([[-1], kept, [len(triangle)]])
        if kept.dtype.kind not in "iu" or not kept.size or (np.diff(bounds) <= 0).any():
            raise ValueError("kept are not features of the kernel")
    if "word" not in facts:
        rows, size = arrays[f"{k}:rows"], facts["size"]
        require_shapes(rows=(rows, (len(triangle),)))
        if rows.dtype.kind not in "iu" or (rows.size and not 0 <= rows.min() <= rows.max() < size):
            raise ValueError("rows are not those of the Gram matrix")
        return KernelView(GivenKernel(facts["name"], None, size), rows, triangle, kept)
    if "shape" in facts:
        data, indices, indptr = (arrays[f"{k}:{part}"] for part in ("data", "indices", "indptr"))
        rows = checked_csr(data, indices, indptr, facts["shape"])
    else:
        rows = arrays[f"{k}:rows"]
    require_shapes(rows=(rows, (len(triangle), d)))
    return KernelView(NamedKernel(facts["name"], facts["word"], facts["parameters"]), rows, triangle, kept)


def _as_array(X):
    return X.toarray() if sparse.issparse(X) else X


def _example(needed: list[str]) -> str:
    """Return what to write, in the words of the user's call."""
    return "{" + ", ".join(f'"{name}": {"X_new" if name == INPUTS else "K_new"}' for name in needed) + "}"
