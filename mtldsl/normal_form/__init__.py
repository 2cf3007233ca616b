"""From what was typed to the normal form, and which solver takes it."""
