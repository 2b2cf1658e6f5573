"""Writes the tables and the figure of README.md from results: `make docs`. The tests compare README.md with what this would write.

A part between `<!-- name: ... -->` and `<!-- end -->` is written as a whole. The digest of the demo's results is in it, so that
a figure which was drawn from other results is noticed.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

import flowloom

ROOT = Path(__file__).parent.parent
FIGURE = "docs/img/demo.png"


def scenario(readme: str) -> str:
    """The first scenario of the README, in TOML."""
    found = re.search(r"^## A scenario\n+```toml\n(.*?)```$", readme, re.M | re.S)
    if found is None:
        raise ValueError("README.md has no scenario")
    return found.group(1)


def digest(results: flowloom.Results) -> str:
    """A digest of the completion times of all flows of all points."""
    rows = results.flows(["flow_id", "fct_ps"]).to_pylist()
    text = "\n".join(sorted(f"{row['point']} {row['flow_id']} {row['fct_ps']}" for row in rows))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def parts(readme: str) -> tuple[dict[str, str], flowloom.Results]:
    """The parts of the README by name, from new runs, and the results of the demo."""
    demo = flowloom.Scenario.from_file(ROOT / "examples/demo.toml").run()
    first = flowloom.Scenario.from_toml(scenario(readme)).run()
    figure = f"![Slowdown against flow size at load 0.8]({FIGURE})\n<!-- {digest(demo)} -->"
    return {"demo": f"```text\n{demo.table()}\n```\n\n{figure}", "scenario": f"```text\n{first.table()}\n```"}, demo


def filled(readme: str, written: dict[str, str]) -> str:
    """The README with its parts as given."""
    for name, text in written.items():
        mark = re.compile(rf"(<!-- {name}: [^\n]*-->\n)(?:.*?\n)??(<!-- end -->)", re.S)
        readme, count = mark.subn(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", readme, count=1)
        if not count:
            raise ValueError(f"README.md has no part `{name}`")
    return readme


def main() -> None:
    """Writes the README and its figure."""
    path = ROOT / "README.md"
    readme = path.read_text(encoding="utf-8")
    written, demo = parts(readme)
    path.write_text(filled(readme, written), encoding="utf-8")
    demo.plot("slowdown", at={"load": 0.8}).savefig(ROOT / FIGURE, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
