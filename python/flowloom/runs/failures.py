"""Notes on failures that touched no traffic."""

from __future__ import annotations

from flowloom.runs.data import Data


def untouched(results: Data) -> list[str]:
    """Returns a note for each failure that touched no traffic, with the points where it did not."""
    rows = [(str(row["point"]), str(row["untouched"])) for row in results.points().to_pylist() if row.get("untouched")]
    found = []
    for text in dict.fromkeys(text for _, text in rows):
        points = [point for point, other in rows if other == text]
        where = "at all points" if len(points) == len(results.runs) else f"in {len(points)} points (first: {points[0]})"
        found.append(
            f"a failure touched no traffic {where}: {text}; its links lost no packet, and no flow that was open then "
            "had a path over them"
        )
    return found
