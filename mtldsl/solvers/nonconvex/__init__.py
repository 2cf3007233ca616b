"""Alternation with learned matrices, reweighting, quasi-Newton and Newton steps, for models that are not convex."""
