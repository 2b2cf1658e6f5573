"""Where the time of flows went."""
