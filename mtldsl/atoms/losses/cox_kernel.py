"""Sums over nested risk sets, one after another: sequential by nature, so compiled; imported when first used."""

from __future__ import annotations

import numpy as np

from mtldsl.utils.jit import compiled


@compiled()
def scan_risk_sets(top, own, deaths):
    """(M, T, B), (K,) each, of risk sets that lose rows in time: S_k = e^(M_k) T_k, the sum of s e^z over set k, M_k the largest z in it, and
    B_k = sum_{l <= k} deaths_l S_k / S_l.

    top : (K,) the largest z of the rows whose last set is k;  own : (K,) their sum of s e^(z - top)

    No number leaves the range of floats, and rounding is that of differences of predictions.
    """
    K = top.size
    M, T, B = np.empty(K), np.empty(K), np.empty(K)
    for k in range(K - 1, -1, -1):
        if k == K - 1 or top[k] >= M[k + 1]:
            M[k], T[k] = top[k], own[k]
            if k < K - 1:
                T[k] += T[k + 1] * np.exp(M[k + 1] - top[k])
        else:
            M[k], T[k] = M[k + 1], T[k + 1] + own[k] * np.exp(top[k] - M[k + 1])
    for k in range(K):
        B[k] = deaths[k]
        if k > 0:
            B[k] += B[k - 1] * (T[k] / T[k - 1]) * np.exp(M[k] - M[k - 1])
    return M, T, B
