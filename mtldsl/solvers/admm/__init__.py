"""The alternating direction method of multipliers: one prox a term, agreement by multipliers."""
