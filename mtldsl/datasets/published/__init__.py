"""The data sets of the papers and of scikit-learn."""
