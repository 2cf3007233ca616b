"""The version of the package, known in a checkout that is not installed too."""

__all__ = [
    "VERSION",
]

VERSION = "0.2.0"
