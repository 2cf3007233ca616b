"""Forms made easier, and the way back: one reduction a file, each with the protocol of `reduction`.

Solvers, the certificate and the reference share them. None holds the formula of an atom or evaluates one: what needs a formula (a function
that touches another, the value of a map at a point) is handed in by its caller, so that the two implementations stay two.
"""
