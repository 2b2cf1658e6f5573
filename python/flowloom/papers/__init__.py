"""Reproductions of papers."""
