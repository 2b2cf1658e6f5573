"""HTML pages: reports and playback."""
