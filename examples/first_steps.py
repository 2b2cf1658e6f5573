"""First steps, from a question to a figure: how much does a short flow lose when it shares links with long flows?

    python first_steps.py           takes some seconds
    python first_steps.py 100       uses 100 flows per run instead of 300

The script writes `first_steps/` in the current folder. A second run simulates only points that have changed.
"""

import sys

import flowloom

flows = int(sys.argv[1]) if len(sys.argv) > 1 else 300

# 1. A scenario is a dict with the keys of a scenario file: a network, a workload, and the systems to compare. A list makes a
#    sweep: this scenario has two loads. `flowloom explain poisson` lists the parameters and the source of each default.
scenario = flowloom.Scenario.from_dict(
    {
        "topology": {
            "kind": "leaf_spine",
            "leaves": 2,
            "spines": 2,
            "hosts_per_leaf": 4,
            "host_rate": "1Gbps",
            "spine_rate": "2Gbps",
        },
        "workload": {"web": {"kind": "poisson", "flows": flows, "load": [0.3, 0.6], "size": "cdf", "cdf": "websearch"}},
        "system": [
            {"label": "pFabric", "transport": "pfabric", "qdisc": "pfabric"},
            {"label": "TCP", "transport": {"kind": "newreno", "min_rto": "10ms", "init_rto": "10ms"}},
        ],
        # An ideal for comparison: the same flows as a fluid, shortest remaining processing time first.
        "ideal": ["srpt"],
    },
    seeds=[1, 2, 3],
)

# 2. The resolved scenario has every default with its source. Read it before you trust a number.
print(scenario.resolved())
print(f"{len(scenario.points)} runs: systems by loads by seeds")

# 3. All systems serve the same flows. With `out`, results are kept in a folder, and finished runs are not repeated.
results = scenario.run(out="first_steps")

# 4. The table: mean over seeds, and half the 95 % confidence interval. Overlapping intervals prove no difference.
print(results.table(["mean_fct_s", "p99_fct_s", "p99_slowdown", "drops", "timeouts"]))

# 5. So compare flow by flow: each flow with the same flow in the other system. Variation between seeds that affects both
#    systems cancels.
for pair in flowloom.compare("first_steps").to_pylist():
    if pair["system_b"] == "TCP":
        interval = f"{pair['ci95_low']:.2f} to {pair['ci95_high']:.2f}"
        print(
            f"load {pair['workload.web.load']}: a flow takes {pair['mean_fct_ratio']:.2f} ({interval}) times as long with TCP "
            f"as with {pair['system_a']}; {100 * pair['b_faster']:.0f} % of the flows are faster with TCP"
        )

# 6. Your own numbers: every table is an Arrow table, which polars and pandas read directly. Which flows are slowed down most?
for row in (
    results.flows(["size_bytes", "slowdown"], at={"load": 0.6, "seed": 1}).sort_by([("slowdown", "descending")]).to_pylist()[:3]
):
    print(f"{row['system']}: a flow of {row['size_bytes']} bytes took {row['slowdown']:.1f} times as long as alone")

# 7. Figures, as PNG and SVG, and a report with all of them. `flowloom list figures` lists the kinds of figures.
flowloom.plot(results, "metrics", out="first_steps/figures/metrics", metrics=["mean_fct_s", "p99_slowdown"])
flowloom.plot(results, "fct_size", out="first_steps/figures/fct_size", at={"load": 0.6})
print(f"report: {results.report()}")
