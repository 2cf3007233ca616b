"""What the machine does to a run: memory, threads and compiled loops, signals, files that are half written or not ours."""
