"""Newton's method for smooth losses: with working sets under row-sparse penalties, with Cholesky factors under a ridge."""
