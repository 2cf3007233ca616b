"""Rules that make new proximal steps of known ones, and what atoms compute in common."""
