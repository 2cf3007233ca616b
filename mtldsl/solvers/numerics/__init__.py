"""Numerical methods that several engines share."""
