"""Validation of what a user hands over, files, threads, memory, interrupts, compiled functions."""
