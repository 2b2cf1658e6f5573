"""Papers: their folders, and reproductions."""

from __future__ import annotations

import io
import json
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from flowloom import _core
from flowloom.__main__ import main
from flowloom.api.results import Results
from flowloom.api.scenario import Scenario
from flowloom.base import meter
from flowloom.figures import style
from flowloom.papers import claims, pages, reproduction, shelf
from flowloom.papers.claims import MET
from flowloom.papers.pages import Findings
from flowloom.papers.shelf import Paper, Stale
from matplotlib.colors import to_rgba

PAGES = Path(__file__).parents[2] / "docs/papers"


def systems(file: Path) -> list[str]:
    return [system["label"] for system in tomllib.loads(file.read_text())["system"]]


def test_papers_are_found_in_the_checkout_first() -> None:
    assert shelf.home().name in ("papers", "papers_data")
    assert shelf.names() == ["botcp", "collectives", "difs", "homa", "merp", "roce", "ssp", "stam", "transports"]
    inside = Path(shelf.__file__).parents[1] / "papers_data"
    assert (inside / "merp" / "paper.toml").is_file(), "what the wheel ships"


@pytest.mark.parametrize("name", shelf.names())
def test_claims_name_systems_keys_and_figures_that_exist(name: str) -> None:
    paper = shelf.load(name)
    of = {figure.id: figure.scenario for figure in paper.figures}
    drawings = paper.drawings()
    assert all((paper.folder / f"{scenario}.toml").is_file() for scenario in paper.scenarios)
    for figure in paper.figures:
        assert callable(getattr(drawings, figure.id))
    for claim in paper.every():
        if claim.kind == "exact":
            assert claim.metric in drawings.exact()
            continue
        if claim.kind == "measured":
            assert claim.metric.split(".")[0] in (claim.figure, of[claim.figure])
            continue
        file = paper.folder / f"{of[claim.scenario or claim.figure]}.toml"
        named = {claim.system, claim.versus, *claim.systems} - {""}
        assert named and named <= set(systems(file)) | {"ideal SRPT", "ideal MERP"}, claim.id
        scenario = tomllib.loads(file.read_text())
        parts = [part for system in scenario["system"] for part in system.values() if isinstance(part, dict)]
        swept_parts = [{key: value} for part in parts for key, value in part.items() if isinstance(value, list)]
        tables = [scenario, scenario["topology"], *scenario["workload"].values(), *swept_parts]
        for key, wanted in claim.at.items():
            swept = next(table[key] for table in tables if key in table)
            have = swept if isinstance(swept, list) else [swept]
            assert wanted == "all" or all(one in have for one in (wanted if isinstance(wanted, list) else [wanted])), claim.id
        metrics = {metric["name"] for metric in _core.entries("metrics")}
        assert {claim.metric, *([claim.per] if claim.per else [])} <= metrics, claim.id


def test_claims_of_a_figure_share_defaults(tmp_path: Path) -> None:
    folder = shutil.copytree(shelf.home() / "botcp", tmp_path / "botcp")
    listed = folder / "claims.toml"
    shared = {claim.seen for claim in shelf.read(folder).claims if claim.figure == "matrix"}
    assert len(shared) == 1 and shared != {""}
    own = 'id = "m-poisson-mean-tcp-2-10"\n'
    listed.write_text(listed.read_text().replace(own, own + 'seen = "its own"\n'))
    by_id = {claim.id: claim for claim in shelf.read(folder).claims}
    assert by_id["m-poisson-mean-tcp-2-10"].seen == "its own" and by_id["m-poisson-mean-tcp-2-50"].seen in shared
    listed.write_text(listed.read_text() + "\n[default.fig99]\n")
    with pytest.raises(ValueError, match=r"default\.fig99"):
        shelf.read(folder)


@pytest.mark.parametrize("name", shelf.names())
def test_the_smoke_profile_is_small(name: str) -> None:
    for file in shelf.load(name).folder.glob("*.toml"):
        text = tomllib.loads(file.read_text())
        if "workload" in text and "web" in text["workload"]:
            small = text["profile"]["smoke"]
            assert len(small["seed"]) <= 2 and small["workload"]["web"]["flows"] <= 300, file.name


def test_the_settings_common_to_the_figures_are_the_same() -> None:
    folder = shelf.load("merp").folder
    seeds = {"fig5": 10, "fig6": 20, "fig7": 3, "fig8": 10, "fig9": 10}
    texts = {name: tomllib.loads((folder / f"{name}.toml").read_text()) for name in seeds}
    first = texts["fig5"]
    for name, text in texts.items():
        assert text["topology"] == first["topology"], name
        web = dict(text["workload"]["web"])
        assert web.pop("mean") == ("1500KB" if name in ("fig5", "fig7") else "150KB")
        assert {0.2, 0.4, 0.6, 0.8} <= set(web.pop("load")), name
        assert web == {k: v for k, v in first["workload"]["web"].items() if k not in ("mean", "load")}, name
        assert text["seed"] == list(range(1, seeds[name] + 1)), name
    merp, pfabric, tcp, _pdq = texts["fig7"]["system"]
    assert [merp, pfabric] == first["system"]
    assert merp["agent"]["alpha"] == 0.999 and merp["transport"]["theta"] == "0.8Gbps"
    assert {system["qdisc"]["limit"] for system in (merp, pfabric, tcp)} == {"100pkt"}


def test_table_1_of_the_compiled_part() -> None:
    found = shelf.load("merp").drawings().exact()
    exact = [claim for claim in shelf.load("merp").claims if claim.kind == "exact"]
    assert len(exact) == 16
    for claim in exact:
        assert found[claim.metric] == pytest.approx(claim.bounds[0], abs=1e-12), claim.id


@pytest.mark.parametrize(
    ("name", "needs", "figure"),
    [
        ("homa", "1 seed, 3 needed", "ratio"),
        pytest.param("merp", "2 seeds, 3 needed", "table1", marks=pytest.mark.slow),
    ],
)
def test_a_reproduction_writes_everything(name: str, needs: str, figure: str, tmp_path: Path) -> None:
    done = reproduction.reproduce(name, None, "smoke", out=tmp_path, meter=None)
    folder = tmp_path / f"{name}-smoke"
    assert done.folder == folder
    drawn = {path.stem for path in folder.glob("*.png")}
    assert figure in drawn and drawn == {path.stem for path in folder.glob("*.svg")}
    assert drawn == {shown.id for shown in done.findings.shown}
    listed = json.loads((folder / "claims.json").read_text())["claims"]
    assert len(listed) == len(done.findings.judged) == len(done.findings.paper.claims)
    assert all(c["verdict"] == "met" for c in listed if c["kind"] == "exact")
    text = (folder / "claims.md").read_text()
    assert all(claim.id in text for claim in done.findings.paper.claims)
    assert needs in text and f"]({figure}.png)" in text
    html = (folder / "report.html").read_text()
    assert "http" not in "".join(part.split('"')[0] for key in ('src="', 'href="') for part in html.split(key)[1:])


def test_one_figure_can_be_run_alone(tmp_path: Path) -> None:
    done = reproduction.reproduce("merp", "fig9", "smoke", out=tmp_path, meter=None)
    assert sorted(done.results) == ["fig9"]
    assert not (tmp_path / "merp-smoke" / "fig5").exists()
    text = pages.console(done.findings)
    assert "f9-small" in text and "f6-max-er" not in text
    again = reproduction.reproduce("merp", "fig6", "smoke", out=tmp_path, meter=None)
    assert sorted(again.results) == ["fig6", "fig9"], "what was run before is judged too"


def test_fig11_uses_the_runs_of_fig10(tmp_path: Path) -> None:
    done = reproduction.reproduce("merp", "fig11", "smoke", out=tmp_path, meter=None)
    assert sorted(done.results) == ["fig10", "fig11"] and done.results["fig10"] is done.results["fig11"]


def test_unknown_names_are_answered_with_the_known(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one of botcp, collectives, difs, homa, merp, roce, ssp, stam, transports"):
        shelf.load("pdq")
    with pytest.raises(ValueError, match="one of promise, table1"):
        reproduction.reproduce("merp", "fig99", out=tmp_path)
    with pytest.raises(ValueError, match="one of paper, seek, smoke"):
        reproduction.reproduce("merp", profile="full", out=tmp_path)


def test_progress_says_how_long_it_will_take() -> None:
    clock = iter([0.0, 10.0, 20.0, 40.0])
    stream = io.StringIO()
    shown = meter.Meter("fig5", stream, lambda: next(clock))
    for done in (1, 2, 4):
        shown({"points_done": done, "points_total": 4})
    assert stream.getvalue().splitlines() == [
        "fig5: 1 of 4 points, 10 s, 30 s left",
        "fig5: 2 of 4 points, 20 s, 20 s left",
        "fig5: 4 of 4 points, 40 s",
    ]
    assert meter.span(89) == "89 s" and meter.span(600) == "10 min" and meter.span(12_000) == "3 h 20 min"


@pytest.mark.parametrize("name", shelf.names())
def test_every_scenario_is_valid(name: str) -> None:
    for file in shelf.load(name).scenarios:
        path = shelf.load(name).folder / f"{file}.toml"
        assert Scenario.from_file(path).points
        assert "profile" not in tomllib.loads(path.read_text()) or Scenario.from_file(path, profile="smoke").points


def test_botcp_and_its_rivals_are_set_alike() -> None:
    """The three of the figures, in every scenario: timers, buffers and thresholds of the paper's section 5."""
    folder = shelf.load("botcp").folder
    for name in ("fig6", "fig8", "fig9", "datamining", "sens_load", "sens_delay", "sens_extreme"):
        by_label = {system["label"]: system for system in tomllib.loads((folder / f"{name}.toml").read_text())["system"]}
        botcp, tcp, dctcp = (by_label[label] for label in ("BOTCP", "TCP", "DCTCP"))
        for key in ("clock", "init_rto", "sack"):
            assert botcp["transport"][key] == tcp["transport"][key] == dctcp["transport"][key], (name, key)
        assert tcp["transport"]["min_rto"] == dctcp["transport"]["min_rto"] == "200us"
        assert {system["qdisc"]["limit"] for system in by_label.values()} == {"131072B"}
        assert (tcp["qdisc"]["th_min"], tcp["qdisc"]["th_max"], dctcp["qdisc"]["mark"]) == ("20pkt",) * 3


def test_botcp_under_extreme_flow_load(tmp_path: Path) -> None:
    """Figs. 9 and 10 have no chance in them and take no time: all their claims but one are met."""
    done = reproduction.reproduce("botcp", "fig9", "smoke", out=tmp_path, meter=None)
    verdicts = {j.claim.id: j.verdict for j in done.findings.judged if j.claim.figure in ("fig9", "fig10")}
    assert len(verdicts) == 17 and [claim for claim, verdict in verdicts.items() if verdict != MET] == ["f9-again-tcp"], verdicts
    fig = done.findings.paper.drawings().fig9(done.results["fig9"])
    lines = {text.get_text() for ax in fig.axes for text in ax.texts}
    assert lines == {"buffer", "Bm", "threshold", "K"} and "queue (KiB)" in {ax.get_ylabel() for ax in fig.axes}


Hashes = Mapping[str, Mapping[str, str]]


def problem(paper: Paper, written: Findings, page: str, today: Hashes) -> str:
    """What is wrong with a paper's page, where its scenarios have these hashes today; else nothing."""
    old = sorted(one for one in {*today, *written.scenarios} if today.get(one) != written.scenarios.get(one))
    if not old and paper.stale is not None:
        return "the page says that it is stale, and it is not: remove `stale` from paper.toml, then `make pages`"
    if old and paper.stale is None:
        changed = f"results of {', '.join(old)} have changed since the page was written"
        return f"{changed}: `make papers`, or `stale` in paper.toml and `make pages`"
    if pages.page(written, PAGES / paper.name) != page:
        return "the page does not say what claims.json and the paper's folder say: `make pages`"
    return ""


@pytest.mark.parametrize("name", sorted(page.parent.name for page in PAGES.glob("*/claims.json")))
def test_the_page_is_that_of_todays_program(name: str, tmp_path: Path) -> None:
    folder = PAGES / name
    paper = shelf.load(name)
    written = Findings.from_json(paper, (folder / "claims.json").read_text(encoding="utf-8"))
    page, today = (folder / "README.md").read_text(encoding="utf-8"), reproduction.hashes(paper, tmp_path)
    assert problem(paper, written, page, today) == ""
    lacks = "`make papers` finds the numbers that it lacks"
    assert paper.stale is not None or reproduction.outdated(written, today) == set(), lacks
    again = "`make papers` writes it from new results"
    assert written.to_json() == (folder / "claims.json").read_text(encoding="utf-8"), f"claims.json is stale: {again}"
    assert {path.stem for path in folder.glob("*.png")} == {figure.id for figure in written.shown}
    texts = [] if paper.stale else paper.texts
    quoted = {(match["id"], match["where"]) for text in texts for match in claims.QUOTED.finditer(text)}
    for number, where in quoted:
        there = [found for found in written.found[number] if where in (None, found.where)]
        assert there and all(found.estimate is not None for found in there), f"{{{number} at {where}}} has no value"


def test_a_text_whose_numbers_wait_for_a_run_says_so(tiny: Path) -> None:
    paper = shelf.load("tiny")
    stale = replace(paper, stale=Stale(date(2026, 11, 24), "x"))
    fresh, waits = (Findings.from_json(one, pages.NOTHING) for one in (paper, stale))
    assert fresh.filled(paper.summary) == "It is -." and waits.filled(paper.summary) == pages.WAITS
    assert [figure.id for figure in fresh.shown] == ["sum"] and waits.shown == []


def test_the_table_of_all_papers_is_that_of_their_pages() -> None:
    files = sorted(PAGES.glob("*/claims.json"))
    every = [Findings.from_json(shelf.load(file.parent.name), file.read_text(encoding="utf-8")) for file in files]
    assert (PAGES / "README.md").read_text(encoding="utf-8") == pages.overview(every), "`make pages`"


TINY = """
seed = [1, 2, 3]
[topology]
kind = "star"
hosts = 4
[workload.web]
kind = "poisson"
flows = 40
load = 0.5
size = "fixed"
mean = "{mean}"
[[system]]
label = "TCP"
transport = {{ kind = "newreno" }}
qdisc = {{ kind = "droptail" }}
[[system]]
label = "DCTCP"
transport = {{ kind = "dctcp" }}
qdisc = {{ kind = "ecn_threshold" }}
[profile.smoke]
seed = [1]
"""

TINY_CLAIM = """
[[claim]]
id = "{figure}-mean"
figure = "{figure}"
quote = "DCTCP is as fast as TCP"
printed = "-"
kind = "reduction"
metric = "mean_fct_s"
system = "DCTCP"
versus = "TCP"
at_least = -9
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a paper of three small scenarios: two figures share one, and one figure shows the numbers of claims."""
    folder = tmp_path / "papers/tiny"
    folder.mkdir(parents=True)
    listed = [("a", "one"), ("again", "one"), ("b", "two"), ("c", "three")]
    heads = "".join(f'[[figure]]\nid = "{figure}"\ntitle = "{figure}"\nscenario = "{scenario}"\n' for figure, scenario in listed)
    first = 'title = "Tiny"\nsource = "-"\nsummary = "It is {a-mean}."\nfirst = "sum"\n'
    (folder / "paper.toml").write_text(f'{first}{heads}[[figure]]\nid = "sum"\ntitle = "Both"\n')
    (folder / "claims.toml").write_text("".join(TINY_CLAIM.format(figure=figure) for figure in "abc"))
    for scenario, mean in (("one", "20KB"), ("two", "30KB"), ("three", "40KB")):
        (folder / f"{scenario}.toml").write_text(TINY.format(mean=mean))
    (folder / "figures.py").write_text(
        "from flowloom.figures import style\n"
        "def a(results): return style.figure()\n"
        "def sum(findings): assert findings.found['a-mean'][0].estimate; return style.figure()\n"
        "again = b = c = a\n"
    )
    monkeypatch.setattr(shelf, "home", lambda: tmp_path / "papers")
    return folder


def test_strict_fails_on_a_claim_that_is_not_met(tiny: Path, tmp_path: Path) -> None:
    asked = ["papers", "tiny", "a", "--out", str(tmp_path / "r")]
    assert main([*asked, "--strict"]) == 0
    listed = tiny / "claims.toml"
    listed.write_text(listed.read_text().replace("at_least = -9", "at_least = 0.9"))
    assert main([*asked, "--strict"]) == 1
    assert main(asked) == 0


def test_a_page_with_other_results_passes_only_while_it_says_that_it_is_stale(tiny: Path, tmp_path: Path) -> None:
    reproduction.update("tiny", tmp_path / "page", out=tmp_path / "r", meter=None)
    fresh = shelf.load("tiny")
    stale = replace(fresh, stale=Stale.read({"since": "2026-11-24", "why": "TCP has  limited\ntransmit."}))
    text = (tmp_path / "page/claims.json").read_text(encoding="utf-8")
    without, noted = (Findings.from_json(paper, text) for paper in (fresh, stale))
    then = without.scenarios
    today = {**then, "two": {"plan": "01234567", "smoke": "89abcdef"}}
    plain, marked = pages.page(without), pages.page(noted)
    paragraph = (
        "> **Stale since 2026-11-24.** TCP has limited transmit. Numbers, verdicts and figures below that depend on this are"
    )
    assert marked.split("\n\n")[2].startswith(paragraph) and paragraph not in plain
    assert problem(fresh, without, plain, then) == problem(stale, noted, marked, today) == ""
    assert problem(fresh, without, plain, today).startswith("results of two have changed")
    assert problem(stale, noted, marked, then).startswith("the page says that it is stale, and it is not")
    # A note on the page alone, in paper.toml alone, and another one.
    for paper, found, page, hashes in (
        (fresh, without, marked, then),
        (stale, noted, plain, today),
        (stale, noted, marked.replace("2026-11-24", "2026-11-23"), today),
    ):
        assert "`make pages`" in problem(paper, found, page, hashes)
    assert "results of two have changed" in problem(fresh, without, marked, today)


def test_an_update_runs_what_has_changed_and_keeps_the_rest(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    run = reproduction.Runs.run

    def noted(runs: reproduction.Runs, scenario: str, meter: meter.Meter | None) -> Results:
        ran.extend([] if runs.over else [scenario])
        return run(runs, scenario, meter)

    monkeypatch.setattr(reproduction.Runs, "run", noted)
    page = tmp_path / "page"

    def again(figure: str | None = None) -> list[str]:
        ran.clear()
        reproduction.update("tiny", page, figure, out=tmp_path / "r", meter=None)
        return list(ran)

    assert again() == ["one", "two", "three"], "there is no page yet"
    assert {path.name for path in page.iterdir()} == {
        "README.md",
        "claims.json",
        *(f"{one}.png" for one in ("a", "again", "b", "c", "sum")),
    }
    first = {path.name: path.read_bytes() for path in page.iterdir()}
    assert again() == []
    assert {path.name: path.read_bytes() for path in page.iterdir()} == first
    assert again("again") == ["one"], "what is asked for runs again"
    # A plan, the results of another, and what a claim asks: each makes its scenario run again.
    two = tiny / "two.toml"
    two.write_text(two.read_text().replace("seed = [1, 2, 3]", "seed = [1, 2, 3, 4]"))
    reported = json.loads(first["claims.json"])
    reported["claims"][0]["parts"][0]["mean"] = 77.0
    reported["scenarios"]["three"]["smoke"] = "00000000"
    (page / "claims.json").write_text(json.dumps(reported))
    (page / "gone.png").write_bytes(b"of a figure that the paper no longer has")
    (page / "a.png").write_bytes(b"kept")
    assert again() == ["two", "three"]
    there = {path.name: path.read_bytes() for path in page.iterdir()}
    assert there["a.png"] == b"kept" and there["b.png"] == first["b.png"] and "gone.png" not in there
    by_id = {one["id"]: one["parts"][0] for one in json.loads(there["claims.json"])["claims"]}
    assert by_id["a-mean"]["mean"] == 77.0, "numbers of what has not changed stay what they are"
    assert (by_id["b-mean"]["seeds"], by_id["c-mean"]["seeds"]) == (4, 3)
    claims_of = tiny / "claims.toml"
    claims_of.write_text(claims_of.read_text().replace("mean_fct_s", "p99_fct_s", 1))
    assert again() == ["one"], "a claim that asks for another number"
    # The first screen is the summary and its figure.
    text = (page / "README.md").read_text()
    assert text.split("\n\n")[2].startswith("It is ") and text.split("\n\n")[3] == "![Both](sum.png)"


def test_an_interrupted_update_keeps_what_it_finished(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    run = reproduction.Runs.run
    stop = True

    def noted(runs: reproduction.Runs, scenario: str, meter: meter.Meter | None) -> Results:
        ran.extend([] if runs.over else [scenario])
        if stop and not runs.over and scenario == "two":
            raise KeyboardInterrupt
        return run(runs, scenario, meter)

    reproduction.update("tiny", tmp_path / "whole", out=tmp_path / "r", meter=None)
    monkeypatch.setattr(reproduction.Runs, "run", noted)
    with pytest.raises(KeyboardInterrupt):
        reproduction.update("tiny", tmp_path / "page", out=tmp_path / "r", meter=None)
    assert ran == ["one", "two"]
    assert "`flowloom papers tiny --update` was interrupted" in (tmp_path / "page/README.md").read_text()
    assert {path.name for path in (tmp_path / "page").iterdir()} == {"README.md", "claims.json", "a.png", "again.png"}
    ran.clear()
    stop = False
    # On another machine, where there are no results.
    reproduction.update("tiny", tmp_path / "page", out=tmp_path / "elsewhere", meter=None)
    assert ran == ["two", "three"]
    whole, page = ({path.name: path.read_bytes() for path in (tmp_path / one).iterdir()} for one in ("whole", "page"))
    assert page == whole


def test_the_map_of_settings_is_on_the_page(tiny: Path, tmp_path: Path) -> None:
    settings = tmp_path / "page/settings/README.md"
    settings.parent.mkdir(parents=True)
    settings.write_text("# TINY: open settings\n\nIt holds.\n\n![The places](seek.png)\n\n| a |\n\n| b |\n\nWritten.\n")
    reproduction.update("tiny", tmp_path / "page", out=tmp_path / "r", meter=None)
    text = (tmp_path / "page/README.md").read_text()
    assert "## Under which settings the numbers come out\n\nIt holds.\n\n![The places](settings/seek.png)\n\n<details" in text


def test_numbers_of_several_scenarios_make_all_of_them_run() -> None:
    paper = shelf.load("merp")
    two = next(number for number in paper.every() if len(paper.taken_from(number)) == 2)
    one, other = paper.taken_from(two)
    nothing = replace(Findings.from_json(paper, pages.NOTHING), found={number.id: () for number in paper.every()})
    assert reproduction.outdated(nothing, {}, {one}) >= {one, other}


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"since": "2026-11-24"},
        {"since": "2026-11-24", "why": " "},
        {"since": "November", "why": "x"},
        {"since": "2026-11-24", "why": 1},
        {"since": "2026-11-24", "why": "x", "until": "2027-01-01"},
    ],
)
def test_a_note_needs_a_day_and_a_reason(table: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"`stale` in `paper.toml` is not a date and a reason\nhint: stale = "):
        Stale.read(table)
    assert Stale.read({"since": date(2026, 11, 24), "why": "x"}).since == date(2026, 11, 24)


def test_new_results_are_not_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = replace(shelf.load("merp"), stale=Stale(date(2026, 11, 24), "x"))
    monkeypatch.setattr(reproduction, "load", lambda name: stale)
    done = reproduction.reproduce("merp", "table1", "smoke", out=tmp_path, meter=None)
    assert "Stale since" not in (done.folder / "claims.md").read_text(encoding="utf-8")


def test_table_1_packet_by_packet(tmp_path: Path) -> None:
    done = reproduction.reproduce("merp", "table1", "smoke", out=tmp_path, meter=None)
    verdicts: dict[str, Any] = {j.claim.id: j.verdict for j in done.findings.judged if j.claim.figure == "table1"}
    assert set(verdicts.values()) == {MET}, verdicts
    assert isinstance(done.results["table1"], Results)


def test_the_flows_of_table_1_bear_their_names(tmp_path: Path) -> None:
    paper = shelf.load("merp")
    folder = tmp_path / "t"
    results = Scenario.from_file(paper.folder / "table1.toml").run(out=folder)
    fig = paper.drawings().table1(results)
    panel = next(ax for ax in fig.axes if ax.get_title() == "MERP, packets")
    held = {str(bars.get_label()): bars.patches[0] for bars in panel.containers}
    # MERP serves A, then C, then B: 3, 4 and 3 units.
    assert [held[name].get_x() for name in "ACB"] == pytest.approx([0, 3, 7], abs=0.2)
    assert [held[name].get_facecolor() for name in "ABC"] == [to_rgba(color) for color in style.COLORS[:3]]
