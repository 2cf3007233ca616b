"""Random models, solved and held to an oracle that is not ours: `python -m tests.fuzz.models --help`."""
