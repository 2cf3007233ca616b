"""`python -m mtldsl` is `mtldsl`."""

import sys

from mtldsl.cli.command_line import main

if __name__ == "__main__":
    sys.exit(main())
