"""Pages of results: the report, its charts, and the playback of packets."""
