"""The errors a user can meet. Each message quotes what was typed, says what is wrong, and what to write instead."""

__all__ = [
    "CrossCheckError",
    "DataError",
    "MTLError",
    "MissingExtraError",
    "ModelError",
    "ProofError",
    "SolverError",
]


class MTLError(Exception):
    """Base of every error that mtldsl raises on purpose."""


class DataError(MTLError, ValueError):
    """The data cannot be used: wrong lengths, NaN, an empty or one-class task, a label outside {-1, +1}, ..."""


class ModelError(MTLError, ValueError):
    """The model cannot be used: not convex, an unknown word, a wrong shape, a term that no solver takes."""


class InfeasibleError(ModelError):
    """No weights satisfy all constraints at once. From `solve` always with a proof of our own."""


class SolverError(MTLError, RuntimeError):
    """A solver was asked for something it refuses, an unknown option, or it failed numerically."""


class ProofError(MTLError, RuntimeError):
    """A fault of mtldsl itself: a bound above an attained objective. The message names the term; please report it."""


class MissingExtraError(MTLError, ImportError):
    """What was asked for needs a package that only an optional extra installs."""


class CrossCheckError(MTLError, AssertionError):
    """The fast solver and the reference formulation disagree beyond the tolerance."""
