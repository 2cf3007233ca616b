"""Public door of the similarities between tasks: `mtl.mkl_norm(W, [mtl.similarities.union(), mtl.similarities.individual()])`."""

from mtldsl.language.similarity_helpers import *  # noqa: F403
from mtldsl.language.similarity_helpers import __all__


def __dir__() -> list[str]:
    return __all__
