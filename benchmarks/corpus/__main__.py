"""`python benchmarks/corpus`: see the package's first lines, and `--help`."""

import os
import sys
from pathlib import Path

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # read when numpy is first imported
_benchmarks = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_benchmarks), str(_benchmarks.parent)]  # from any directory, from a fresh checkout

if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        from corpus.worker import main

        main(sys.argv[2] if len(sys.argv) > 2 else "")
    else:
        from corpus.command import main

        sys.exit(main(sys.argv[1:]))
