"""Files of other programs: ARFF, CSV, LIBSVM, NPZ, MAT."""
