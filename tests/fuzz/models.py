"""python -m tests.fuzz.models: random models, each one seed, solved and held to an oracle.

--seed 17                one model, and what came of it
--count 2000 --first 0   as many seeds; those with a finding are printed
--minutes 60             seeds for so long
"""

import sys

from tests.fuzz.judge import FINDINGS, judge
from tests.fuzz.seeds import run_seeds


def main(arguments=None) -> int:
    return run_seeds("tests.fuzz.models", __doc__, _shown, 2000, arguments)


def _shown(seed: int) -> tuple[str, str]:
    """(what is found, and of which model, or nothing; the status, and whether there is an oracle)."""
    case = judge(seed)
    found = [f"{kind} ({FINDINGS[kind]}): {text}" for kind, text in case.findings.items()]
    shown = "\n".join([*found, f"{', '.join(case.tags)}\n{case.text}"]) if found else ""
    return shown, case.status.split(":")[0] + ("" if case.has_oracle else ", no oracle")


if __name__ == "__main__":
    sys.exit(main())
