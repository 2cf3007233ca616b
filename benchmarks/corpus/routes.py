"""Our own routes: what "auto" does, and every solver that accepts the model, with the options that are worth a try."""

from __future__ import annotations

__all__ = ["AUTO", "own_routes"]

AUTO = "auto"

#: solver -> other settings of it that are routes of their own, where it takes them
_VARIANTS: dict[str, tuple[dict, ...]] = {
    # which backend the reference should begin with; OSQP says itself where the model is not a quadratic program
    "cvxpy": ({"backend": "clarabel"}, {"backend": "scs"}, {"backend": "osqp"}),
}


def own_routes(problem) -> dict[str, tuple[str, dict]]:
    """Name of the route -> (solver, options), "auto" first and the reference last."""
    accepting = [name for name, verdict, _ in problem.explain().verdicts() if verdict != "refused"]
    accepting.sort(key=lambda name: name == "cvxpy")
    found: dict[str, tuple[str, dict]] = {AUTO: (AUTO, {})}
    for name in accepting:
        found[name] = (name, {})
        for options in _VARIANTS.get(name, ()):
            found[f"{name}-{next(iter(options.values()))}"] = (name, dict(options))
    return found
