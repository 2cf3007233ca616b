"""The [learned] table of a problem file: what is learned beside the weights, by its kind."""

from __future__ import annotations

from mtldsl.files.section import Reading, Section
from mtldsl.language.text.kinds import kind_of
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.words.did_you_mean import nearest
from mtldsl.language.words.vocabulary import UNKNOWNS

__all__ = ["LEARNED"]


def _read(reading: Reading) -> None:
    """Sigma1 = "FeaturePrecision"; and what the model that the file names learns."""
    for name, kind in (reading.named.learned if reading.named is not None else {}).items():
        if reading.names.get(name) is None:
            reading.names[name] = UNKNOWNS[kind].declared(reading.train, name)
    for name, kind in reading.table("learned").items():
        reading.names[name] = _learned(reading, name, kind)


def _learned(reading: Reading, name: str, kind) -> LearnedUnknown:
    path = ("learned", name)
    if not isinstance(kind, str):
        known = ", ".join(f'"{word}"' for word in UNKNOWNS)
        raise reading.file.error(f"write {name} = one of {known}, not {kind_of(kind)}", path, value=True)
    if kind not in UNKNOWNS:
        raise reading.file.error(
            f"nothing of the kind {kind!r} is learned{nearest(kind, UNKNOWNS)}", path, value=True
        )
    return UNKNOWNS[kind].declared(reading.train, name)


LEARNED = Section("learned", names=True, read=_read)
