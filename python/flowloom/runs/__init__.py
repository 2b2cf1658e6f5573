"""What a run left: its points, tables and numbers."""
