"""Entry point of `python -m mtldsl`: the same program as the command `mtldsl`."""

import sys

from mtldsl.cli.command_line import main

if __name__ == "__main__":
    sys.exit(main())
