"""A small independent checker of saved proofs: the objective at the point and the bound of the multipliers, in intervals that hold.

It reads a file that `mtldsl.certificates.proof_writer` wrote and the data, and imports nothing of the solvers, the atoms or the compiler: its formulas
are its own. Every number of the file is an exact real number here. What multipliers miss of the rules of duality (docs/mathematics.md,
section 2) is put right in real numbers, of which enclosures are known: multipliers are moved into the domains of the conjugates,
the residual of the stationarity equation is given to a term that takes it, and all are scaled into the dual balls. Where no term takes a
residual it is paid for by max |<residual, x>| over a box, and the verdict says "for all weights up to ...".
"""
