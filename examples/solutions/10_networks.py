"""Solutions of lesson 10, and mistakes that its checks have to notice."""


def n_weights(d, units, m, shared):
    """(d + 1) for every unit, and (units + 1) for every output; STN has all of it m times."""
    if shared:
        return (d + 1) * units + (units + 1) * m
    return m * ((d + 1) * units + units + 1)


n_weights.mistakes = [
    lambda d, units, m, shared: d * units + units * m,
    lambda d, units, m, shared: (d + 1) * units + (units + 1) * m,
]


def gradient_of_penalty(W, S1, S2, eta):
    """W stands in the trace twice, and both matrices are symmetric."""
    return 2 * eta * S1 @ W @ S2


gradient_of_penalty.mistakes = [
    lambda W, S1, S2, eta: eta * S1 @ W @ S2,
    lambda W, S1, S2, eta: 2 * S1 @ W @ S2,
]
