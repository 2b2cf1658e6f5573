"""Explanations of where the time of flows went."""
