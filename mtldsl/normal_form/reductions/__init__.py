"""Forms made easier, and the way back: reductions, each with the protocol of `reduction`.

The reference shares `majorized` and `task_subset`, which hold no formula of an atom and evaluate nothing: what needs a number (a function
that touches another, the value of a map at a point) is handed in by the caller, so that the two implementations stay two.
"""
