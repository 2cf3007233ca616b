"""Results of a solve: weights, predictions, scores, what was learned beside the weights, its page, and how it is saved."""
