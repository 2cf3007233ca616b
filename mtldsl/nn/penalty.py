"""A learned structure on the last layer: checked, and its quadratic form written with PyTorch's operations."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from mtldsl.atoms.structures import Range, SpectralMatrix, Structure
from mtldsl.errors import ModelError

__all__ = ["checked_structure", "kept_quadratic"]


def checked_structure(structure, shape: tuple[int, int], typed: str):
    """The structure; ModelError where it cannot be the penalty of a last layer W of that shape."""
    if structure is None:
        return None
    if not isinstance(structure, Structure):
        raise ModelError(
            f"structure={structure!r} is not a learned structure",
            term=typed,
            write_instead="write "
            "structure=MatrixNormal(eta=1.0, rho=1.0).bound([Range(0.01, 100.0), Range(0.01, 100.0)])",
        )
    if not structure.is_smooth:
        raise ModelError(
            f"structure={structure.name} has no gradient where W has not full rank, and a network is trained by "
            "gradients",
            term=typed,
            write_instead="write MatrixNormal().bound([Range(0.01, 100.0), Range(0.01, 100.0)])",
        )
    matrices = [getattr(structure, f.name) for f in fields(structure) if "matrix" in f.metadata]
    for learned, said in zip(structure.learns, matrices, strict=True):
        side = shape[0] if learned.axis == "features" else shape[1]
        _check_matrix(said, learned, side, structure, typed)
    return structure


def _check_matrix(said, learned, side: int, structure, typed: str) -> None:
    if isinstance(said, SpectralMatrix):
        if said.side != side:
            raise ModelError(
                f"{learned.name} is given as {said.side} x {said.side}, but the last layer has {side} {learned.axis}",
                term=typed,
            )
        if not said.eigenvalues()[0] > 0:
            raise ModelError(f"{learned.name} is given, but not positive definite", term=typed)
        return
    if not isinstance(said, Range):
        raise ModelError(
            f"structure={structure.name} says nothing of {learned.name}",
            term=typed,
            write_instead="write "
            "structure.bound([Range(0.01, 100.0), Range(0.01, 100.0)]), or SpectralMatrix.of(array) in place of a Range",
        )
    for bound, missing in (("lower", not said.lower > 0), ("upper", not said.upper < np.inf)):
        if missing and bound in structure.needs:
            raise ModelError(
                f"{learned.name} has no {bound} bound: {structure.needs[bound].format(name=learned.name)}",
                term=typed,
                write_instead="write Range(0.01, 100.0)",
            )


def kept_quadratic(torch, structure: Structure, shape: tuple[int, int], matrices):
    """W -> structure.value_at(W, matrices) as a function of a tensor, 1/2 tr(A W B W^T) + constant."""
    quadratic = structure.quadratic(shape, matrices)
    rows, columns = _product(torch, quadratic.rows), _product(torch, quadratic.columns)
    return lambda W: 0.5 * (rows(W) * columns(W.T).T).sum() + quadratic.constant


def _product(torch, S: SpectralMatrix):
    """M -> S M, in time linear in the rank of what S holds beside a multiple of the identity."""
    U = torch.tensor(S.basis)
    above = torch.tensor(S.values - S.rest)[:, None]
    return lambda M: U @ (above * (U.T @ M)) + S.rest * M
