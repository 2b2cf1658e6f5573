"""What needs no results: words and units, files, progress."""
