"""The kinds of term of a normal form, one a file."""
