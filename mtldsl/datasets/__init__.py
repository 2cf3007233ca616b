"""Data: generators with known weights, readers of common files, and the papers' data.

from mtldsl import datasets
tasks = datasets.load_digits()
tasks, W = datasets.make_low_rank(n_tasks=20, n_samples=100, n_features=30, rank=3, random_state=0)
"""

from mtldsl.datasets.digits import load_digits
from mtldsl.datasets.synthetic import make_group_sparse, make_low_rank

#: name -> loader, for `dataset = "digits"` in a problem file
LOADERS = {"digits": load_digits}

__all__ = ["LOADERS", "load_digits", "make_group_sparse", "make_low_rank"]
