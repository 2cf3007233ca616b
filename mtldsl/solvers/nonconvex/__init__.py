"""Models that are not convex: alternation with learned matrices, reweighting, quasi-Newton and Newton steps."""
