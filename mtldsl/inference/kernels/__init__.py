"""The compiled loops of inference: plain functions on arrays, imported where they are first called."""
