"""Files of data and solutions with damaged or forged bytes, each one seed, read and used."""

import io
import json
import random
import shutil
import tempfile
import traceback
import warnings
import zipfile
from pathlib import Path

import numpy as np

import mtldsl as mtl
from tests.fuzz.sound_files import READERS

#: One in so many seeds is a MATLAB file: each costs the start of a process.
_MATLAB = 40


def judge(seed: int, sound: Path) -> tuple[str, str]:
    """(what is wrong, or nothing; kind of file and how it ended) of one damaged copy of a sound file."""
    draw = random.Random(seed)
    kinds = sorted(READERS)
    kind = "mat" if seed % _MATLAB == 0 else draw.choice([kind for kind in kinds if kind != "mat"])
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "damaged"
        shutil.copytree(sound / kind, place)
        path = draw.choice(sorted(place.iterdir()))
        if path.suffix == ".npz" and draw.random() < 0.6:
            path.write_bytes(_forged(draw, path.read_bytes()))
        else:
            path.write_bytes(_damaged(draw, path.read_bytes()))
        try:
            # a damaged number may be 1e300; what is computed with it is not looked at
            with np.errstate(all="ignore"):
                warnings.simplefilter("ignore", RuntimeWarning)
                READERS[kind](place)
        except mtl.DataError:
            return "", f"{kind}: refused"
        except mtl.MTLError as error:
            return "", f"{kind}: {type(error).__name__}"
        except Exception:
            return f"{kind}, {path.name}\n{traceback.format_exc()}", f"{kind}: WRONG"
    return "", f"{kind}: read"


def _damaged(draw, data: bytes) -> bytes:
    for _ in range(draw.choice((1, 1, 2, 5, 20))):
        at = draw.randrange(len(data) or 1)
        what = draw.randrange(7)
        if what <= 2:
            byte = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
            data = data[:at] + bytes([byte]) + data[at + 1 :]
        elif what == 3:
            data = data[:at] + draw.randbytes(draw.choice((1, 4, 8, 100))) + data[at:]
        elif what == 4:
            data = data[:at] + data[at + draw.choice((1, 8, 100)) :]
        elif what == 5:  # a number of eight bytes that is another
            number = draw.choice((0, -1, 2**31, 2**62, -(2**63), 7)).to_bytes(8, "little", signed=True)
            data = data[:at] + number + data[at + 8 :]
        elif draw.random() < 0.3:
            data = data[:at]
    return data


def _forged(draw, data: bytes) -> bytes:
    """An archive whose checksums are right, and a member of it damaged; or its JSON changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = draw.choice(sorted(members))
    what = draw.randrange(5)
    if "json.npy" in members and what <= 2:
        plain = json.loads(str(np.load(io.BytesIO(members["json.npy"]))))
        _change(draw, plain)
        members["json.npy"] = _npy(np.array(json.dumps(plain)))
    elif what == 3:
        odd = [np.full((2, 2, 2), np.nan), np.nan, np.zeros((3, 0)), ["x"], [2**60]]
        members[name] = _npy(np.asarray(draw.choice(odd)))
    elif what == 4 and len(members) > 1:
        del members[name]
    else:
        members[name] = _damaged(draw, members[name])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return out.getvalue()


_ODD = (None, True, 0, -1, 1e308, float("nan"), float("inf"), 10**30, "", "x", "optimal", [], {}, [None], {"a": 1}, [[1]], "a\0b")  # fmt: skip


def _change(draw, plain) -> None:
    """One value, somewhere in the JSON, is another, is gone, or has another name."""
    while True:
        keys = list(plain) if isinstance(plain, dict) else list(range(len(plain)))
        if not keys:
            return
        key = draw.choice(keys)
        if isinstance(plain[key], dict | list) and plain[key] and draw.random() < 0.7:
            plain = plain[key]
            continue
        what = draw.randrange(5)
        if what == 0:
            del plain[key]
        elif what == 1 and isinstance(plain, dict):
            plain[draw.choice(("verified", "state", "x", "status"))] = plain.pop(key)
        else:
            plain[key] = draw.choice(_ODD)
        return


def _npy(array) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()
