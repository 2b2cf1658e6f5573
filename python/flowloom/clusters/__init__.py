"""Points that run on the workers of clusters."""
