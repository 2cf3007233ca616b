"""The paper's Table 1, as printed: SARCOS' mean squared error a torque (44,484 training and 4,449 test rows), School's NMSE ± deviation."""

from __future__ import annotations

__all__ = ["PAPER_SARCOS", "PAPER_SCHOOL"]

PAPER_SARCOS = {
    "STL": (31.40, 22.90, 9.13, 10.30, 0.14, 0.84, 0.46),
    "MTFL": (31.41, 22.91, 9.13, 10.33, 0.14, 0.83, 0.45),
    "MTRL": (31.09, 22.69, 9.08, 9.74, 0.14, 0.83, 0.44),
    "MTFRL": (31.13, 22.60, 9.10, 9.74, 0.13, 0.83, 0.45),
    "FETR": (31.08, 22.68, 9.08, 9.73, 0.13, 0.83, 0.43),
    "STN": (24.81, 17.20, 8.97, 8.36, 0.13, 0.72, 0.34),
    "MTN": (12.01, 10.54, 5.02, 7.15, 0.09, 0.70, 0.27),
    "MTN-FETR": (10.77, 9.34, 4.95, 7.01, 0.08, 0.59, 0.24),
}

PAPER_SCHOOL = {
    "STL": (0.9882, 0.0196),
    "MTFL": (0.8891, 0.0380),
    "MTRL": (0.9007, 0.0407),
    "MTFRL": (0.8451, 0.0197),
    "FETR": (0.8134, 0.0253),
}
