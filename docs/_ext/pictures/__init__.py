"""The pictures of docs/, drawn when the site is built: `docs/pictures/*.png`, in the house's colours, readable at half their width.

    python docs/_ext/pictures          draws those that are not there, or are older than what they are drawn from

One file a subject: `weights` what penalties do, `curves` losses, metrics and penalties of singular values, `profiles` the corpus, `guides` one picture per guide.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parents[1]
ROOT = DOCS.parent
FOLDER = DOCS / "pictures"

#: every corpus row that `profiles` draws
ROWS = ROOT / "benchmarks" / "results" / "corpus.parquet"


def drawings() -> dict:
    """The name of each picture -> a function without arguments that returns a matplotlib Figure."""
    from . import curves, guides, profiles, weights

    return {**curves.DRAWINGS, **weights.DRAWINGS, **profiles.DRAWINGS, **guides.DRAWINGS}


def draw(folder: Path = FOLDER, names=None) -> list[Path]:
    """Draw what is missing or out of date; the paths of all."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    changed = max(path.stat().st_mtime for path in (*HERE.glob("*.py"), ROWS))
    found = []
    for name, make in drawings().items():
        path = folder / f"{name}.png"
        if names is None or name in names:
            found.append(path)
            if not path.exists() or path.stat().st_mtime < changed:
                figure = make()
                figure.savefig(path, dpi=110, facecolor="white")
                plt.close(figure)
    return found


def setup(app) -> dict:
    """Sphinx: drawn before any page is read."""
    app.connect("config-inited", lambda app, config: draw())
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # mtldsl, and the rows' reader in benchmarks/
