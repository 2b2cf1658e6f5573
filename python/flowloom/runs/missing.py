"""The sentence on points that results do not have."""

from __future__ import annotations

import json

from flowloom.base import words
from flowloom.runs.data import Data, read

WHY = {
    "running": "the run was killed, or is still running",
    "stopped": "the run was stopped",
    "failed": "a point failed",
    "lost": "points were removed while the run wrote them",
    "share": "only one shard of the run was run",
}
"""Why points may be missing, by `stop_reason` of the manifest."""


def missing(results: Data) -> str:
    """Returns a sentence on how many points of the run have no results, and why; empty if all have.

    It is about the whole run, also if only some systems or flows of it were chosen.
    """
    if results.complete:
        return ""
    manifest = json.loads(results._core.manifest)
    planned = len(manifest["points"])
    done = read(results._core.points())["state"].to_pylist().count("done")
    reason = str(manifest.get("stop_reason"))
    why = f", because {WHY[reason]}" if reason in WHY else ""
    hint = "join all shards with `flowloom merge`" if reason == "share" else "the same `flowloom run` adds them"
    lack = "is missing" if planned - done == 1 else "are missing"
    return f"{planned - done} of {words.counted(planned, 'point')} {lack}{why}: {hint}"
