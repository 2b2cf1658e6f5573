"""Scenarios and results: the part of the package that programs use."""
