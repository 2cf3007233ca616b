"""Small faults planted in a copy of the package, one at a time, and whether the tests near them notice.

    python tests/mutations.py                 all of them; some minutes
    python tests/mutations.py bound gap       those whose module or text holds one of these words
    python tests/mutations.py --list

A mutation is a module, a text that stands in it exactly once, what is put in its place, and (by the module) the tests to run. It is
*killed* where one of these fails or does not end in time, else it has *survived*. Survivors with a reason are known: what they change
is not a fault (another bound that is a bound too, a slower way to the same point), and the reason says so. The exit code is 1 where one
survives without a reason, or where a text no longer stands there once: mend the test, or the mutation.

It is not part of the default run.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: module (or the start of its name) -> tests that are near it; the longest start that fits counts
NEAR = {
    "mtldsl.certificates": "tests/proof/test_certificate.py tests/proof/test_residual.py tests/proof/test_rounding.py",
    "mtldsl.certificates.dual_bound": "tests/proof/test_rounding.py tests/proof/test_rounding_law.py tests/proof/test_certificate.py tests/proof/test_residual.py",
    "mtldsl.certificates.stationarity": "tests/proof/test_stationarity.py tests/proof/test_first_order.py tests/solvers/test_nonconvex_admm.py",
    "mtldsl.certificates.free_directions": "tests/proof/test_rank_deficient.py",
    "mtldsl.certificates.infeasibility": "tests/proof/test_infeasibility.py",
    "mtldsl.solvers.run": "tests/solvers/test_slots.py tests/proof/test_certificate.py tests/test_problem.py tests/compile/test_centred.py",
    "mtldsl.solvers.monitor": "tests/solvers/test_best_point.py tests/proof/test_stationarity.py",
    "mtldsl.solvers.linear_systems.closed_form": "tests/solvers/test_closed_form.py",
    "mtldsl.solvers.linear_systems": "tests/solvers/test_admm.py",
    "mtldsl.solvers.admm": "tests/solvers/test_admm.py tests/test_mixed_models.py",
    "mtldsl.solvers.proximal_gradient": "tests/solvers/test_proximal_gradient.py",
    "mtldsl.solvers.nonconvex": "tests/solvers/test_alternation_steps.py",
    "mtldsl.normal_form.reductions": "tests/compile/test_reductions.py tests/check/test_block_check.py",
    "mtldsl.normal_form.reductions.coordinates": "tests/compile/test_centred.py tests/compile/test_far_columns.py",
    "mtldsl.normal_form.terms.structured_term": "tests/proof/test_certificate.py tests/compile/test_structured_term.py",
    "mtldsl.normal_form.terms.joint_losses": "tests/compile/test_structured_term.py tests/proof/test_certificate.py tests/test_mixed_models.py",
    "mtldsl.normal_form": "tests/proof/test_certificate.py tests/test_mixed_models.py",
    "mtldsl.normal_form.term": "tests/proof/test_certificate.py tests/proof/test_infeasibility.py tests/test_mixed_models.py",
    "mtldsl.problems": "tests/check/test_cross_check.py",
    "mtldsl.problems.cross_check_comparison": "tests/check/test_cross_check.py tests/check/test_block_check.py",
    "mtldsl.problems.cross_check_blocks": "tests/check/test_block_check.py tests/check/test_block_check_spectral.py",
}


@dataclass(frozen=True)
class Mutation:
    module: str  # without "mtldsl."
    old: str
    new: str
    survives: str = ""  # why it may

    @property
    def file(self) -> Path:
        return Path("mtldsl", *self.module.split(".")).with_suffix(".py")

    @property
    def tests(self) -> list[str]:
        name = f"mtldsl.{self.module}"
        return NEAR[max((start for start in NEAR if name.startswith(start)), key=len)].split()

    def __str__(self) -> str:
        return f"{self.module}: {self.old}  ->  {self.new}"


M = Mutation
MUTATIONS = [
    # ---- the bound
    M("certificates.dual_bound", "0.0 if constant is None else loss.along(dual, constant)", "0.0"),
    M("normal_form.term", "float(np.vdot(V, self.map.offset))", "0.0"),
    M("certificates.dual_bound", "largest = 1.0 if gauge <= 1.0 else", "largest = 1.0 if True else"),
    M("certificates.dual_bound", "value=bound.value - paid", "value=bound.value"),
    M("certificates.dual_bound", "gauge = max((f.dual_gauge(dual)", "gauge = min((f.dual_gauge(dual)"),
    M("certificates.dual_bound", "        total = form.constant\n", "        total = 0.0\n"),
    M("certificates.dual_bound", "infimum = form.constant - sum(", "infimum = form.constant + sum(",
      "no bound follows from it: losses whose infimum is not zero are far from its negative"),
    M("certificates.dual_bound", "if stuck is not None:", "if False:"),
    M("certificates.dual_bound", "if left and np.isfinite(bound.value) else", "if False else"),
    # ---- multipliers made stationary
    M("certificates.multipliers", "/ entry.coefficient**2", "/ entry.coefficient"),
    M("certificates.multipliers", "/ form.functions[taker].map.multiple_of(name)", ""),
    M("certificates.multipliers", "if not is_rounding(*left[name]):", "if False:"),
    M("certificates.multipliers", "_balance_intercepts(form, u)", "pass"),
    M("certificates.multipliers", "totals = totals - before + form", "totals = totals + form"),
    M("certificates.multipliers", "return u - u.mean()", "return u"),
    M("certificates.multipliers", "bool(np.isfinite(f.atom.dual_gauge(np.ones(f.map.shape))))", "True"),
    M("certificates.free_directions", "wanted = [-(residual[block]", "wanted = [(residual[block]"),
    M("certificates.multipliers", "u[t] = form.losses[t].clip(moved)", "u[t] = moved",
      "it costs rounds: multipliers outside their domain are projected at the end"),
    M("certificates.free_directions", "mixed[kind.rows] += (size[kind.rows] @ B.T) @ A.T", "pass"),
    M("certificates.multipliers", "if picks(entry.left) and picks(", "if picks(entry.left) or picks(",
      "the equation is checked afterwards: a wrong gift may cost a bound, and never makes one"),
    # ---- what is left of the equation, and what it costs
    M("certificates.multipliers", "ROUNDING_SHARE = 1e-12", "ROUNDING_SHARE = 1e-6"),
    M("certificates.multipliers", "reach_factor: float = 100.0", "reach_factor: float = 1.0"),
    M("certificates.dual_bound", "np.abs(residual) * reach[name]", "residual * reach[name]"),
    M("certificates.multipliers", "SETTINGS.reach_factor * np.maximum(own, alone)", "SETTINGS.reach_factor * np.minimum(own, alone)"),
    M("certificates.multipliers", "into[entry.block] += abs(entry.coefficient) * image", "into[entry.block] += image"),
    M("certificates.multipliers", "np.where(residual == 0.0, 0.0, np.inf)", "np.zeros_like(residual)"),
    # ---- the gap
    M("certificates.dual_bound", "/ over(max(abs(objective), abs(bound)), scale)", "/ max(abs(objective), abs(bound), 1.0)"),
    M("certificates.dual_bound", "return SETTINGS.zero_share * min(finite)", "return 1e-2 * min(finite)"),
    M("certificates.dual_bound", "math.isfinite(objective) and math.isfinite(bound)", "math.isfinite(objective) or math.isfinite(bound)"),
    # ---- the certificate
    M("certificates.certificate", "abs(self.relative_gap) <= tol and self.violation", "abs(self.relative_gap) <= 3 * tol and self.violation"),
    M("certificates.certificate", "self.violation <= tol and self.relative_rounding", "self.relative_rounding"),
    M("certificates.certificate", "and self.relative_rounding <= tol)", ")"),
    M("certificates.certificate", "return self.objective - self.dual_bound", "return self.dual_bound - self.objective"),
    M("certificates.certificate", "bound -= rounding", "bound += rounding"),
    M("certificates.certificate", "self.stationarity.residual <= tol and self.violation <= tol", "self.stationarity.residual <= tol"),
    # ---- rounding
    M("certificates.dual_bound", "return ROUNDING_UNITS * _EPS * total", "return 0.0 * total"),
    M("certificates.dual_bound", "objective + rounding:\n        return\n    surplus", "np.inf:\n        return\n    surplus"),
    M("certificates.dual_bound", "total += loss.magnitude(u, blocks)", "total += 0.0"),
    # ---- stationary points
    M("certificates.stationarity", "if value >= -_DECREASE_ROUNDING_SHARE else np.inf", "if value >= -_DECREASE_ROUNDING_SHARE else 0.0"),
    M("certificates.stationarity", "term.coefficient * (now - least) / size", "(now - least) / size"),
    M("certificates.stationarity", "gradient, max(gradient, of_matrices), size)", "gradient, gradient, size)"),
    M("certificates.stationarity", ".prox(x - t * g, t)", ".prox(x, t)"),
    M("certificates.stationarity", "(objective - bound_of_kept(kept)) / size", "0.0 * size"),
    M("certificates.stationarity", "(objective - kept_value(form, blocks, best)) / size", "0.0"),
    M("certificates.stationarity", "tau_shares: tuple[float, ...] = (1e-3", "tau_shares: tuple[float, ...] = (1e3"),
    M("certificates.stationarity", 'found["balance"] = left', 'found["balance"] = 0.0'),
    M("certificates.stationarity", "f.prox(w + tau * v, tau)", "f.prox(w, tau)"),
    M("certificates.stationarity", "loss.prox(z + step * u, step)", "loss.prox(z, step)"),
    M("certificates.stationarity", "before - residual / form", "before + residual / form"),
    M("certificates.stationarity", "if value < lowest and form.violation(step) <= allowed:", "if value < lowest:"),
    M("certificates.stationarity", "reach_share: float = 1e-2", "reach_share: float = 1e-9"),
    M("certificates.stationarity", "if 0.0 < np.linalg.norm(moved - s) <= reach:", "if False:"),
    # ---- constraints that no weights satisfy
    M("certificates.infeasibility", "margin -= least * slope", "pass"),
    M("certificates.infeasibility", "return self.margin > 0.0", "return self.margin >= 0.0"),
    M("normal_form.term", "inner - (0.0 if self.atom.norm", "inner + (0.0 if self.atom.norm"),
    # ---- solvers: who is believed, and when
    M("solvers.run", "if status in DONE or monitor.left:", "if True:"),
    M("solvers.run", 'if (status == "optimal" and not certificate.within(tol)) or', "if"),
    M("solvers.monitor", "if seen.dual_bound > self.bound:", "if True:"),
    M("solvers.monitor", "one.objective - value > self.tol *", "value - one.objective > self.tol *"),
    M("solvers.monitor", "abs(one.objective - bound) < abs(incumbent.objective - bound)", "one.objective < incumbent.objective"),
    M("solvers.monitor", "return feasible or (not was_feasible and one.violation < incumbent.violation)", "return feasible"),
    M("solvers.monitor", "allowed = 0.0 if self.convex else self.tol", "allowed = self.tol"),
    # ---- solvers: their steps
    M("solvers.linear_systems.task_matrices", "else loss.tasks.targets - constant", "else loss.tasks.targets"),
    M("solvers.linear_systems.task_matrices", "-curvature.product(f.map.offset)", "curvature.product(f.map.offset)"),
    M("solvers.linear_systems.task_matrices", "else loss.scale / loss.scale.mean()", "else loss.scale",
      "penalties are balanced later: the same point by other steps"),
    M("solvers.admm.iteration", "2.0 * w - self.s - self.constant", "2.0 * w - self.s"),
    M("solvers.admm.iteration", "multipliers = self.metric * (self.s - w)\n        quotients", "multipliers = self.s - w\n        quotients",
      "penalties are balanced by other quotients: the same point by other steps"),
    M("solvers.linear_systems.closed_form", "y_mean - x_mean @ W[:, i] if facts.intercept", "y_mean if facts.intercept"),
    M("solvers.proximal_gradient.proximal_gradient", "if curved <= self.L * length", "if True or curved <= self.L * length"),
    # ---- reductions
    M("normal_form.reductions.coordinates", "loss.tasks.targets - centre", "loss.tasks.targets + centre"),
    M("normal_form.reductions.coordinates", "-sign * self.distances", "sign * self.distances"),
    M("normal_form.reductions.block_reductions", "constant = sum((more for _, more in made), form.constant)", "constant = form.constant"),
    M("normal_form.reductions.reduction", "f.coefficient * way.constant", "way.constant"),
    M("normal_form.reductions.block_reductions", "f.atom.relaxed(self.factor)", "f.atom"),
    M("normal_form.reductions.reduction", "others[entry.block][:, self.which] = 0.0", "pass"),
    M("normal_form.reductions.reduction", "blocks=blocks, loss_duals=None, function_duals=None", "blocks=blocks"),  # tests/compile/test_reductions.py
    M("normal_form.reductions.reduction", "coefficients=np.asarray(loss.coefficients)[which]", "coefficients=np.asarray(loss.coefficients)[: len(which)]"),
    # ---- terms
    M("normal_form.terms.structured_term", "t * self.proven if t > 0.0 else", "self.proven if t > 0.0 else"),
    M("normal_form.terms.joint_losses", "np.maximum(self._dual_norms(u), 1.0)", "np.minimum(self._dual_norms(u), 1.0)"),
    M("normal_form.terms.joint_losses", "u**2 if s is None else u**2 / s", "u**2 if s is None else u**2 * s"),
    M("normal_form.terms.joint_losses", "self.coefficients * weights)", "weights)"),
    M("normal_form.term", "c * self.atom.conjugate(u[rows] / c, y, s)", "self.atom.conjugate(u[rows] / c, y, s)",
      "the losses of the language that are not sums over samples have terms of their own: only a stranger's loss goes this way"),
    M("normal_form.term", "return self.coefficient * self.atom.conjugate(V / self.coefficient)", "return self.atom.conjugate(V / self.coefficient)"),
    M("normal_form.term", "return self.atom.dual_gauge(V / self.coefficient)", "return self.atom.dual_gauge(V)"),
    M("normal_form.term", "return self.atom.prox(V, step * self.coefficient)", "return self.atom.prox(V, step)"),
    M("normal_form.term", "else image + self.offset", "else image - self.offset"),
    # ---- the comparison with the reference
    M("problems.cross_check_comparison", "FORMULA_TOL = 1e-9", "FORMULA_TOL = 1e-3"),
    M("problems.cross_check_comparison", "if not violation <= self.tol:", "if False:"),
    M("problems.cross_check_comparison", "if not self.difference <= self.tol and", "if False and"),
    M("problems.cross_check_comparison", "self.certified and -self.difference <= self.gaps[1] < np.inf", "self.certified"),
    M("problems.cross_check_comparison", "relative_gap(bound, objective, self.scale) > self.tol", "relative_gap(bound, objective, self.scale) > 1e9"),
    M("problems.cross_check_comparison", "return not -self.difference <= self.tol", "return False"),
    M("problems.cross_check_comparison", "if not abs(self.learned_excess) <= self.tol:", "if False:"),
    M("problems.cross_check_comparison", "not self.weights_difference <= self.weights_reach", "False"),
    M("problems.cross_check_comparison", "max(abs(fast), abs(relative_gap(self.reference_objective", "min(abs(fast), abs(relative_gap(self.reference_objective"),
    M("problems.cross_check_comparison", "if not abs(self.touching) <= FORMULA_TOL:", "if False:"),
    M("problems.cross_check_comparison", "if not self.margin >= -FORMULA_TOL:", "if False:"),
    M("problems.cross_check_comparison", "if not self.violation <= self.tol:", "if False:"),
    M("problems.cross_check_comparison", "- self.objective_by_reference) / self.size > self.tol", "- self.objective_by_reference) / self.size > 1e9"),
    M("problems.cross_check", "+ solution.tol,", "+ 1.0,"),
    M("problems.cross_check", "term.coefficient * term.atom.strong_convexity", "term.atom.strong_convexity"),
    M("problems.cross_check_blocks", "least, method = self.objective - gain,", "least, method = self.objective,"),
    M("problems.cross_check_blocks", "self.objective + term.coefficient * (found - now)", "self.objective + (found - now)"),
]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only mutations whose module or text holds one of these")
    parser.add_argument("--list", action="store_true", help="list them, run nothing")
    parser.add_argument(
        "--trust", action="store_true", help="that the tests pass without a mutation: do not try first"
    )
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for the tests of one")
    options = parser.parse_args()
    chosen = [m for m in MUTATIONS if not options.words or any(word in str(m) for word in options.words)]
    stale = [m for m in chosen if (ROOT / m.file).read_text().count(m.old) != 1]
    for m in stale:
        print(f"stale     {m} (it must stand exactly once in {m.file})")
    chosen = [m for m in chosen if m not in stale]
    if options.list:
        print(*chosen, sep="\n")
        return bool(stale)
    wrong = len(stale)
    with tempfile.TemporaryDirectory() as folder:
        copy = _copied(Path(folder))
        failing = (
            "survived"
            if options.trust
            else _outcome(copy, sorted({test for m in chosen for test in m.tests}), 20 * options.timeout)
        )
        if failing != "survived":
            print(f"the tests do not pass without any mutation ({failing}); see {copy / 'out.txt'}")
            print((copy / "out.txt").read_text()[-3000:])
            return 1
        for m in chosen:
            wrong += _said(m, *_tried(m, copy, options.timeout))
    print(f"{len(chosen)} mutations, {wrong} that nothing noticed or that no longer fit")
    return bool(wrong)


def _said(m: Mutation, outcome: str, seconds: float) -> bool:
    """Print what became of it; whether somebody should look."""
    known = outcome == "survived" and m.survives
    print(f"{outcome:9} {seconds:5.0f} s  {m}" + (f"  (known: {m.survives})" if known else ""), flush=True)
    return outcome == "survived" and not known


def _copied(folder: Path) -> Path:
    """The tree as it stands, without what git ignores."""
    copy = folder / "copy"
    ignored = shutil.ignore_patterns(
        ".git", ".venv", "__pycache__", "build", "*.egg-info", ".hypothesis", "benchmarks"
    )
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    shared = ROOT.parent / "shared"
    if shared.exists():  # fixtures, beside the checkout
        (folder / "shared").symlink_to(shared)
    return copy


def _tried(m: Mutation, copy: Path, timeout: float) -> tuple[str, float]:
    path = copy / m.file
    right = path.read_text()
    started = time.perf_counter()
    path.write_text(right.replace(m.old, m.new))
    try:
        found = _outcome(copy, m.tests, timeout)
        if found == "survived":  # the slow tests may know better
            found = _outcome(copy, ["-m", "", *m.tests], timeout)
        return found, time.perf_counter() - started
    finally:
        path.write_text(right)


def _outcome(copy: Path, tests: list[str], timeout: float) -> str:
    """In a process of its own, in which the package is imported from the copy."""
    # -B: two files written within a second look alike to the cache
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider"]
    with open(copy / "out.txt", "w") as out:
        child = subprocess.Popen(
            [*command, "--no-header", "--tb=line", *tests],
            cwd=copy, env=os.environ | {"PYTHONPATH": str(copy)}, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
        try:
            return "survived" if child.wait(timeout) == 0 else "killed"
        except subprocess.TimeoutExpired:
            return "timed out"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


if __name__ == "__main__":
    sys.exit(main())
