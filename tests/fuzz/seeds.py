"""The command line of the fuzzers."""

import argparse
import time
from collections import Counter
from collections.abc import Callable
from itertools import count, islice


def run_seeds(prog: str, doc: str, judge: Callable[[int], tuple[str, str]], many: int, arguments=None) -> int:
    """Judge one seed, so many, or seeds for some minutes; print what is wrong and how many ended how; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(prog=f"python -m {prog}", description=doc.split("\n\n")[0])
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int, default=many)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float)
    options = parser.parse_args(arguments)
    seeds = count(options.first) if options.minutes else islice(count(options.first), options.count)
    began, ends, found = time.monotonic(), Counter[str](), 0
    for seed in seeds if options.seed is None else [options.seed]:
        since = time.monotonic()
        wrong, end = judge(seed)
        ends[end] += 1
        if wrong or time.monotonic() - since > 30:
            found += 1
            print(f"--seed {seed} ({time.monotonic() - since:.1f} s): {wrong}", flush=True)
        if options.minutes and time.monotonic() - began > 60 * options.minutes:
            break
    print("\n".join(f"{times:6d} {end}" for end, times in sorted(ends.items())))
    print(f"{ends.total()} seeds in {time.monotonic() - began:.0f} s: {found} wrong")
    return 1 if found else 0
