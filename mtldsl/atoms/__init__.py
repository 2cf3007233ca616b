"""One class a word: value, prox, conjugate and the traits that solvers ask for; and what these classes share."""
