"""Points on the workers of clusters."""
