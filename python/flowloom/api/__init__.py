"""Scenarios and results, as programs use them."""
