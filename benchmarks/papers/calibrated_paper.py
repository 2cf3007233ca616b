"""The paper's Tables 3, 4 and 5, as printed."""

from __future__ import annotations

__all__ = ["PAPER_SECONDS", "PAPER_SYNTHETIC", "PAPER_TABLE"]

#: (setting, method) -> nMSE, its standard error; estimation error, its standard error; of 100 simulations
PAPER_SYNTHETIC = {
    ("d1", "NC-MTL"): (0.8406, 0.1621, 0.1247, 0.0223),
    ("d1", "NC-CMTL"): (0.7977, 0.1537, 0.1236, 0.0211),
    ("d2", "NC-MTL"): (0.9982, 0.1982, 0.1237, 0.0319),
    ("d2", "NC-CMTL"): (0.9992, 0.1983, 0.1237, 0.0328),
    ("d3", "NC-MTL"): (8.2795, 1.7524, 0.3721, 0.0721),
    ("d3", "NC-CMTL"): (0.6001, 0.1226, 0.0947, 0.0126),
    ("d4", "NC-MTL"): (4.3439, 0.9857, 0.3641, 0.0695),
    ("d4", "NC-CMTL"): (0.2035, 0.0234, 0.0783, 0.0158),
}

_METHODS = ("Lasso", "CMTFL", "NN-MTL", "Capped-MTL", "Robust-MTL", "NC-CMTL")
_ROWS = {
    ("school", 10): ((1.0238, 0.0018), (0.9512, 0.0022), (0.9364, 0.0034), (0.9215, 0.0037), (0.9134, 0.0040), (0.8864, 0.0035)),
    ("school", 20): ((0.8729, 0.0041), (0.8407, 0.0064), (0.8331, 0.0028), (0.8223, 0.0037), (0.8115, 0.0056), (0.7822, 0.0048)),
    ("school", 30): ((0.8132, 0.0021), (0.8122, 0.0031), (0.7870, 0.0016), (0.7692, 0.0024), (0.7612, 0.0033), (0.7539, 0.0022)),
    ("sarcos", 100): ((0.1621, 0.0155), (0.1572, 0.0022), (0.1531, 0.0024), (0.1516, 0.0017), (0.1472, 0.0026), (0.1375, 0.0015)),
    ("sarcos", 200): ((0.1569, 0.0061), (0.1523, 0.0143), (0.1491, 0.0021), (0.1447, 0.0029), (0.1368, 0.0031), (0.1116, 0.0022)),
    ("sarcos", 300): ((0.1547, 0.0038), (0.1507, 0.0062), (0.1456, 0.0025), (0.1438, 0.0033), (0.1324, 0.0027), (0.1106, 0.0018)),
}  # fmt: skip

#: (data, size, method) -> nMSE, its deviation
PAPER_TABLE = {
    (*key, method): cell for key, cells in _ROWS.items() for method, cell in zip(_METHODS, cells, strict=True)
}

#: (data, method) -> seconds
PAPER_SECONDS = {
    ("school", "NN-MTL"): 0.32, ("school", "Capped-MTL"): 1.52, ("school", "Robust-MTL"): 0.93, ("school", "NC-CMTL"): 0.15,
    ("sarcos", "NN-MTL"): 0.23, ("sarcos", "Capped-MTL"): 1.16, ("sarcos", "Robust-MTL"): 0.87, ("sarcos", "NC-CMTL"): 0.10,
}  # fmt: skip
