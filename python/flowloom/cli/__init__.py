"""Modules that only the command line uses."""
