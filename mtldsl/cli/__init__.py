"""The command line, the problem files it reads, and the records and reports of a run.

Exit codes: 0 certified (and, where it was checked, agreeing); 1 not certified, or a cross-check that disagrees or could not be
made; 2 bad input; 130 interrupted by Ctrl-C, 143 by SIGTERM, after the best point so far was reported and written. A model that is not convex is certified as a
stationary point.
"""

from mtldsl.cli.command_line import main

__all__ = ["main"]
