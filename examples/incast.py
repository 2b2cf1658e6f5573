"""How much does TCP's minimum timeout matter when many servers answer at once?

Run it anywhere: `python incast.py`. It prints a table and writes `incast.png` and `incast.svg`.
"""

from pathlib import Path

import flowloom

scenario = flowloom.Scenario.from_dict(
    {
        "topology": {"kind": "star", "hosts": 20, "rate": "1Gbps", "delay": "10us"},
        "workload": {"answers": {"kind": "incast", "senders": [4, 8, 16], "size": "64KB"}},
        "system": [
            {"label": "200 ms", "transport": {"kind": "newreno", "min_rto": "200ms"}},
            {"label": "5 ms", "transport": {"kind": "newreno", "min_rto": "5ms"}},
        ],
    },
    seeds=[1, 2, 3],
)
print(f"{len(scenario.points)} points to run")
results = scenario.run()

# Print the summary, as text and as numbers.
print(results.table(["mean_fct_s", "max_fct_s", "drops", "timeouts"]))
for row in results.summary().to_pylist():
    if row["metric"] == "timeouts":
        print(f"{row['system']} with {row['workload.answers.senders']} senders: {row['mean']} timeouts")

# Find the slowest flow of each system. The table of all flows is an Arrow table.
flows = results.flows(["flow_id", "fct_ps"]).to_pylist()
for system in results.systems:
    finished = (flow["fct_ps"] for flow in flows if flow["system"] == system and flow["fct_ps"] is not None)
    print(f"{system}: the slowest flow took {max(finished) / 1e9:.1f} ms")

# Draw metrics against the number of senders.
flowloom.plot(results, "metrics", out=Path("incast"), metrics=["mean_fct_s", "max_fct_s"])
