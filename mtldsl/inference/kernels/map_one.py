"""The best labelling of one instance, by whichever method its plan is for: what other compiled loops call."""

from __future__ import annotations

from mtldsl.inference.kernels.elimination import eliminate
from mtldsl.inference.kernels.enumeration import enumerate_labellings
from mtldsl.inference.kernels.labelling_value import labelling_value
from mtldsl.inference.kernels.message_passing import pass_messages
from mtldsl.system.compiled import compiled

__all__ = ["map_one"]


@compiled(inside=True, nogil=True, error_model="numpy")
def map_one(eliminates, enumerates, scores, plan, work, iwork, label):
    """(value, upper) of the labelling written into `label` (K,) uint8: value <= the maximum <= upper, equal where the method is exact.

    (eliminates, enumerates) is the `choice` of a `Decoder`; `plan`, `work` (float64) and `iwork` (int64) are its own too; `scores` (S,)
    is one contiguous row. What is None is known from its type: so no method is compiled but the one that is used.
    """
    if iwork is not None:
        return pass_messages(scores, plan, work, iwork, label)
    if eliminates is not None:
        eliminate(scores, plan, work, label)
    if enumerates is not None:
        enumerate_labellings(scores, plan, work, label)
    value = labelling_value(scores, plan, label)
    return value, value
