"""What is asked of a model beside its solution: the parameter value at which weights vanish, the refit on a graph, cross-validation, confidence."""
