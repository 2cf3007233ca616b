"""Whole batches, a function a method: only the method that is called is compiled."""

from __future__ import annotations

from mtldsl.inference.kernels.elimination import eliminate
from mtldsl.inference.kernels.enumeration import enumerate_labellings
from mtldsl.inference.kernels.labelling_value import labelling_value
from mtldsl.inference.kernels.message_passing import pass_messages
from mtldsl.inference.kernels.sum_elimination import sum_eliminate
from mtldsl.inference.kernels.sum_enumeration import sum_enumerate
from mtldsl.system.compiled import compiled

__all__ = [
    "eliminate_each",
    "enumerate_each",
    "pass_messages_each",
    "sum_eliminate_each",
    "sum_enumerate_each",
]


@compiled(nogil=True, error_model="numpy")
def eliminate_each(scores, plan, work, iwork, labels, values, upper):
    """`eliminate` on every row of `scores` (n, S)."""
    for i in range(len(scores)):
        eliminate(scores[i], plan, work, labels[i])
        values[i] = upper[i] = labelling_value(scores[i], plan, labels[i])


@compiled(nogil=True, error_model="numpy")
def enumerate_each(scores, plan, work, iwork, labels, values, upper):
    """`enumerate_labellings` on every row of `scores` (n, S)."""
    for i in range(len(scores)):
        enumerate_labellings(scores[i], plan, work, labels[i])
        values[i] = upper[i] = labelling_value(scores[i], plan, labels[i])


@compiled(nogil=True, error_model="numpy")
def pass_messages_each(scores, plan, work, iwork, labels, values, upper):
    """`pass_messages` on every row of `scores` (n, S)."""
    for i in range(len(scores)):
        values[i], upper[i] = pass_messages(scores[i], plan, work, iwork, labels[i])


@compiled(nogil=True, error_model="numpy")
def sum_eliminate_each(scores, plan, n_messages_in_all, work, log_z, marginals):
    """`sum_eliminate` on every row of `scores` (n, S)."""
    for i in range(len(scores)):
        log_z[i] = sum_eliminate(scores[i], plan, n_messages_in_all, work, marginals[i])


@compiled(nogil=True, error_model="numpy")
def sum_enumerate_each(scores, plan, n_messages_in_all, work, log_z, marginals):
    """`sum_enumerate` on every row of `scores` (n, S)."""
    for i in range(len(scores)):
        log_z[i] = sum_enumerate(scores[i], plan, work, marginals[i])
