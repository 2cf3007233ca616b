"""The best labelling of one instance, by whichever method its plan is for: what other compiled loops call."""

from __future__ import annotations

from mtldsl.inference.kernels.elimination import eliminate
from mtldsl.inference.kernels.enumeration import enumerate_labellings
from mtldsl.inference.kernels.labelling_value import labelling_value
from mtldsl.inference.kernels.message_passing import pass_messages
from mtldsl.system.compiled import compiled

__all__ = ["map_one"]


@compiled(nogil=True)
def map_one(code, scores, plan, work, iwork, label):
    """(value, upper) of the labelling written into `label` (K,) uint8: value <= the maximum <= upper, equal where the method is exact.

    `code`, `plan`, the sizes of `work` (float64) and `iwork` (int64) are those of a `Decoder`; `scores` (S,) is one contiguous row.
    With `iwork` None only the exact methods are compiled, which takes half as long; MPLP needs the array.
    """
    # the first half is known from the types: without the array the branch is left out of the compiled function
    if iwork is not None and code == 2:
        return pass_messages(scores, plan, work, iwork, label)
    if code == 0:
        eliminate(scores, plan, work, label)
    else:
        enumerate_labellings(scores, plan, work, label)
    value = labelling_value(scores, plan, label)
    return value, value
