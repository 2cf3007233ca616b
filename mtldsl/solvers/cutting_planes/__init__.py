"""Structured losses as maxima of planes: dual ascent, and ADMM beside anything else."""
