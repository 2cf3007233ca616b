"""Measures of predictions by name: scikit-learn's functions on labels with gaps, by task, averaged, and of whole rows."""
