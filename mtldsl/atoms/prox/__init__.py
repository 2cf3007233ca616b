"""Rules that make new proximal steps of known ones."""
