"""The prox of total variation, row by row: sequential by nature, so compiled; imported when first used."""

from __future__ import annotations

import numpy as np

from mtldsl.utils.jit import compiled


@compiled()
def denoise_rows(Y, step):
    """argmin over V of 1/2 ||V - Y||_F^2 + step * sum over rows and i < q of |V[r, i+1] - V[r, i]|; Y (p, q)
    C-contiguous float64.

    Along one row let h_i(b) be the least cost of the first i entries when the i-th is b. Its derivative is
    increasing and piecewise linear, and h_{i+1}'(b) = (b - y_{i+1}) + clip(h_i'(b), -step, step) (Johnson
    2013). The pieces between `left` and `right` are kept as knots where (slope, intercept) changes; clipping
    drops knots at both ends and adds one at each, so a row costs O(q). `low[i]`, `high[i]` are where h_i'
    leaves [-step, step]: b_i = clip(b_{i+1}, low[i], high[i]) goes back.
    """
    p, q = Y.shape
    V = Y.copy()
    if step <= 0.0 or q == 1:
        return V
    at = np.empty(2 * q)
    slope_change = np.empty(2 * q)
    intercept_change = np.empty(2 * q)
    low = np.empty(q)
    high = np.empty(q)
    for r in range(p):
        # Intercepts add up along the row: measured from its mean they stay small.
        mean = Y[r].mean()
        left, right = q, q - 1
        # First derivative: b - y on the whole line.
        slope_left, intercept_left = 1.0, -(Y[r, 0] - mean)
        slope_right, intercept_right = slope_left, intercept_left
        for i in range(q - 1):
            while left <= right and slope_left * at[left] + intercept_left < -step:
                slope_left += slope_change[left]
                intercept_left += intercept_change[left]
                left += 1
            low[i] = (-step - intercept_left) / slope_left
            while right >= left and slope_right * at[right] + intercept_right > step:
                slope_right -= slope_change[right]
                intercept_right -= intercept_change[right]
                right -= 1
            high[i] = (step - intercept_right) / slope_right
            left -= 1
            at[left] = low[i]
            slope_change[left] = slope_left
            intercept_change[left] = intercept_left + step
            right += 1
            at[right] = high[i]
            slope_change[right] = -slope_right
            intercept_change[right] = step - intercept_right
            y = Y[r, i + 1] - mean
            slope_left, intercept_left = 1.0, -step - y
            slope_right, intercept_right = 1.0, step - y
        while left <= right and slope_left * at[left] + intercept_left < 0.0:
            slope_left += slope_change[left]
            intercept_left += intercept_change[left]
            left += 1
        b = -intercept_left / slope_left
        V[r, q - 1] = b + mean
        for i in range(q - 2, -1, -1):
            b = min(max(b, low[i]), high[i])
            V[r, i] = b + mean
    return V
