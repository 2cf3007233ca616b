"""The solvers: each takes normal forms that it accepts, and reports points until it is told to stop."""
