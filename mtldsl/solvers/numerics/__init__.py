"""Numerical methods that engines share."""
