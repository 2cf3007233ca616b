"""Pictures, one kind a file: matplotlib axes in, axes out; colours that the colour-blind tell apart."""
