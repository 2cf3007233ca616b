"""The command line, one file a kind of command: `mtldsl new TABLE`, `mtldsl solve | check | explain FILE`, `mtldsl predict MODEL NEW`, `mtldsl verify PROOF`, `mtldsl words`, `mtldsl models`.

Exit codes: 0 certified (and, where it was checked, agreeing); 1 not certified, or a cross-check that disagrees or could not be
made; 2 bad input; 130 interrupted by Ctrl-C, 143 by SIGTERM, after the best point so far was reported and written. A model that is not convex is certified as a
stationary point.
"""

from mtldsl.cli.command_line import main

__all__ = ["main"]
