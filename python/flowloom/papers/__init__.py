"""Papers: their claims, judged on results, and their pages."""
