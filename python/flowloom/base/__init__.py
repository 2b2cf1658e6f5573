"""Modules that need no results: words and units, files, progress, errors."""
