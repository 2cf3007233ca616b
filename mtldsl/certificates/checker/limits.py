"""All limits of the checker: of what a proof may claim, of repairs, of guesses that are then shown, and of memory and time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CheckerSettings:
    """Numbers of the checker; `SETTINGS` is the one instance."""

    # ---- what is confirmed
    default_tol: float = 1e-4  # relative gap up to which a claim is confirmed where the user names none
    zero_share: float = 1e-8  # part of the objective at weights of zero below which an optimum counts as zero
    reach_factor: float = 100.0  # sizes of the point and of the labels that a region holds at least

    # ---- repairs of points and multipliers
    # shares by which points are drawn into balls beyond their surface, in turn: what linear constraints undo of it
    ball_shares: tuple[float, ...] = (0.0, 1e-13, 1e-11, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
    # shares by which multipliers are drawn towards zero, in turn: at the ends of their domains they have no room
    multiplier_shares: tuple[float, ...] = (0.0, 1e-9, 1e-6)
    added_rounds: int = 25  # rounds in which linear constraints that a move touches are added
    left_out_rounds: int = 5  # rounds that leave out multipliers of bounds with another sign
    room_share: float = 1e-14  # room that is not used, of the largest multiplier
    # least share of a task in a maximum: one without multipliers has a share to divide them by
    least_task_share: float = 2.0**-60

    # ---- guesses
    pivot_share: float = (
        1e-12  # pivot below which a row counts as a sum of others, of the largest; fractions then show it
    )
    zero_value_share: float = (
        1e-10  # singular values that count as zero, of the largest; fractions then show it
    )
    variance_halvings: int = 200  # halvings of the interval of the factor of variances
    level_halvings: int = 60  # halvings of an interval of floats: to their spacing

    # ---- intervals of a choice
    choice_halvings: int = 4  # halvings of an interval of the file that proves less than is claimed
    shift_doublings: int = (
        40  # doublings of an interval of an intercept until it is shown; then it is infinite
    )
    shift_halvings: int = 4  # halvings of the last doubling: the end is at most 7 % too far
    step_share: float = 2.0**-5  # step of a quotient that bounds a slope, of the interval's length

    # ---- memory and time
    kept_bits: int = 200  # bits that are kept of fractions which have more
    exact_flops: int = 20_000_000  # most products of numbers of the exact check
    directions: int = 1_500  # most directions that are balanced at once
    equation_rows: int = 1_500  # most equations that are solved at once
    block_tasks: int = 400  # columns of a block beyond which no directions are looked for
    compared_entries: int = 100_000  # most entries that are compared in fractions, for one direction
    # products of one group of directions, in float64, beyond which it is left as it is
    float_flops: int = 20_000_000_000
    fraction_flops: int = 1_000_000  # the same in fractions
    enumeration_labels: int = 14  # most labels of which all labellings are looked at
    slab_entries: int = 2_000_000  # pairs of samples, or tables, that are held at once


SETTINGS = CheckerSettings()
