"""Every word a second time, as one short formula in numpy, and the value of a statement as typed."""
