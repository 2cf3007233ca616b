"""Exercises that check their answers, and films of a solve."""
