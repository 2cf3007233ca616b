"""Peers of a problem: the packages that can state it, of those that are installed."""

from __future__ import annotations

from . import peers_conic, peers_glmnet, peers_gradient, peers_homotopy, peers_sklearn
from .peer import Peer, PeerProblem, installed_version

__all__ = ["PACKAGES", "missing_packages", "peers_for"]

#: package that pip knows -> what of the peers needs it
PACKAGES = (
    "scikit-learn",
    "celer",
    "skglm",
    "adelie",
    "python-glmnet",
    "highspy",
    "cvxpy",
    "clarabel",
    "scs",
)


def peers_for(instance) -> dict[str, Peer]:
    """Name -> peer, of the packages that are installed, for a convex problem; {} for one that no other package states."""
    found: dict[str, Peer] = {}
    if instance.stated.plain:
        problem = PeerProblem(instance)
        for part in (peers_sklearn, peers_homotopy, peers_glmnet, peers_gradient, peers_conic):
            found.update(part.peers(problem))
    found.update(peers_conic.conic(instance))
    return {name: peer for name, peer in found.items() if installed_version(peer.package)}


def missing_packages() -> list[str]:
    return [name for name in PACKAGES if not installed_version(name)]
