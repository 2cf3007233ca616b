"""What words there are, as text, Markdown and formulas."""

from mtldsl.catalogue.words import catalogue

__all__ = ["catalogue"]
