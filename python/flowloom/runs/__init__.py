"""Results of runs: points, tables and numbers."""
