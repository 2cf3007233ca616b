"""Estimators with scikit-learn's face: fit, predict, get_params. This room imports scikit-learn; `import mtldsl` does not import it."""

from mtldsl.estimators.plst import PLST

__all__ = ["PLST"]
