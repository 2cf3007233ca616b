"""What a solve returns: weights, predictions, scores, what was learned beside the weights, and how all of it is saved."""
