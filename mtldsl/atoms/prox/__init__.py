"""Rules that make new proximal steps from known ones."""
