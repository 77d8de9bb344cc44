"""Records of evaluations, and their comparison."""
