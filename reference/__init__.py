"""The second implementation: a normal form stated in cvxpy, one function an atom, from the definitions alone.

It shares the language with the fast side and no formula, so that their agreement is evidence.
"""
