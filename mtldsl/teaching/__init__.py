"""Exercises, films of a solve, and sources of what is shown."""
