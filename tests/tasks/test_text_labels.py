"""Labels that are text: the message says what to write for labels, not what to write for features."""

import numpy as np
import pandas as pd
import pytest

import mtldsl as mtl


def test_text_in_y_and_in_x_get_advice_of_their_own():
    text = pd.DataFrame({"ill": ["yes", "no"]})
    with pytest.raises(mtl.errors.DataError, match=r"column 'ill'.*write -1 and \+1"):
        mtl.Tasks.shared(np.eye(2), text)
    with pytest.raises(mtl.errors.DataError, match=r"column 'ill'.*one column per category"):
        mtl.Tasks.shared(text, np.ones((2, 1)))


def test_so_do_labels_of_a_long_table():
    ids = ["a", "a", "b", "b"]
    with pytest.raises(mtl.errors.DataError, match=r"column 'ill'.*write -1 and \+1"):
        mtl.Tasks.grouped(np.eye(4), pd.Series(["yes", "no", "no", "yes"], name="ill"), ids)
