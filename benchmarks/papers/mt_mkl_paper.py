"""The AUCs of the paper's Figure 1(b), averaged over tasks."""

from __future__ import annotations

__all__ = ["PAPER_AUC"]

#: One draw of the data, C and how it was chosen not given.
PAPER_AUC = {
    "MT-MKL p=1": 0.7939,
    "MT-MKL p=2": 0.8203,
    "MT-MKL p=3": 0.8293,
    "Vanilla": 0.7660,
    "Union": 0.7876,
    "Individual": 0.6841,
}
