"""The laws by the kind of function that they are about."""
