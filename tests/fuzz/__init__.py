"""Random models, solved and held to an oracle that is not ours: `python -m pytest tests/fuzz --fuzz 2000`."""
