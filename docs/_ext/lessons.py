"""The lessons as a gallery: each script with what it prints and draws, as a page and as a notebook.

The scripts write their pictures to files in `output/`, as a script should; here these are what a part of a lesson has to show.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from multiprocessing import set_start_method
from pathlib import Path

from elsewhere import ROOT

OUTPUT = ROOT / "examples" / "output"
PICTURES = (".png", ".gif")

#: Pixels of a thumbnail, twice what is shown.
THUMBNAIL = (560, 392)

#: lessons that end at once where something is not installed, and so have nothing to show
NEEDS = {"24_beyond_one_machine": "distributed"}


def pattern() -> str:
    """Which lessons are run: all that can be."""
    absent = [lesson for lesson, needed in NEEDS.items() if find_spec(needed) is None]
    return rf"/(?!{'|'.join([*absent, '-'])})\d\d_"


def forget(gallery_conf: dict, script: str) -> None:
    """Before a lesson: pictures that are there already are not its own; and it starts processes as a script would, not as joblib's."""
    set_start_method("spawn", force=True)
    for picture in _of(script):
        picture.unlink()


def drawn(block, block_vars: dict, gallery_conf: dict) -> str:
    """After a part of a lesson: the pictures that it wrote, which move to its page."""
    from sphinx_gallery.scrapers import figure_rst

    places = []
    for picture in _of(block_vars["src_file"]):
        place = Path(next(block_vars["image_path_iterator"])).with_suffix(picture.suffix)
        shutil.move(picture, place)
        places.append(str(place))
    return figure_rst(places, gallery_conf["src_dir"])


def legible(app) -> None:
    """After all lessons: a thumbnail is the left end of the first picture, whose letters can be read; of a film, its last frame."""
    from PIL import Image, ImageSequence

    folder = Path(app.srcdir, "lessons", "images")
    for thumbnail in folder.glob("thumb/sphx_glr_*_thumb.png"):
        lesson = thumbnail.stem.removesuffix("_thumb")
        pictures = sorted(folder.glob(f"{lesson}_*"), key=lambda path: (path.suffix == ".gif", path.name))
        if not pictures:
            continue
        with Image.open(pictures[0]) as picture:
            frame = [one.convert("RGB") for one in ImageSequence.Iterator(picture)][-1]
        wide, high = frame.size
        shape = (
            min(wide, round(high * THUMBNAIL[0] / THUMBNAIL[1])),
            min(high, round(wide * THUMBNAIL[1] / THUMBNAIL[0])),
        )
        frame.crop((0, 0, *shape)).resize(THUMBNAIL, Image.Resampling.LANCZOS).save(thumbnail)


def grouped(app) -> None:
    """The index is the header's own, which has the lessons in groups; the gallery would list all of them again below."""
    shutil.copy(ROOT / "examples" / "GALLERY_HEADER.rst", Path(app.srcdir, "lessons", "index.rst"))


def setup(app) -> dict:
    for step in (legible, grouped):
        app.connect("builder-inited", step, priority=900)  # the lessons have run
    return {"parallel_read_safe": True}


def _of(script: str) -> list[Path]:
    number = Path(script).stem.split("_")[0]
    return sorted(path for path in OUTPUT.glob(f"{number}_*") if path.suffix in PICTURES)
