"""Figures and tables for papers: sizes, fonts, chosen panels, the numbers that are drawn, LaTeX."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import small
from flowloom.__main__ import main
from flowloom.api.results import Results
from flowloom.base import words
from flowloom.cli.given import chosen_systems
from flowloom.figures import appearance, fitting, fonts, plots, style
from flowloom.figures.kinds import KINDS
from flowloom.runs import tables
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text

WIDTH = "3.33in"
NO_LATEX = "no LaTeX: `apt install texlive-latex-extra dvipng cm-super`"


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Leaves matplotlib's settings as they were, and lets figures be higher than a page."""
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "this figure is")
        warnings.filterwarnings("ignore", "the font `Times`")
        yield


def axes_of(fig: Figure) -> list[Axis]:
    return [axis for ax in fig.axes if ax.axison for axis in (ax.xaxis, ax.yaxis)]


def seen_texts(fig: Figure) -> list[Text]:
    """All texts that are drawn: of ticks, those in view."""
    ticks = [
        tick for ax in fig.axes for axis in (ax.xaxis, ax.yaxis) for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
    ]
    labels = {id(label) for tick in ticks for label in (tick.label1, tick.label2)}
    labels -= {id(label) for axis in axes_of(fig) for label in fitting.shown_labels(axis)}
    found = [text for text in fig.findobj(Text) if isinstance(text, Text) and id(text) not in labels]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def page(pdf: bytes) -> tuple[float, float]:
    found = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf)
    assert found
    return float(found[1]), float(found[2])


# Sizes


@pytest.mark.parametrize("name", list(KINDS))
def test_nothing_is_cut_in_the_column_of_a_paper(name: str, six_trained: Results, six_traced: Results, tmp_path: Path) -> None:
    source = six_traced if KINDS[name].meta.needs in ("samples", "packets") else six_trained
    fig = plots.draw(source, name, style="paper", width=WIDTH)
    fig.draw_without_rendering()
    texts = seen_texts(fig)
    assert len(texts) > 3
    for text in texts:
        box = text.get_window_extent()
        assert box.x0 >= -0.5 and box.x1 <= fig.bbox.width + 0.5, (text.get_text(), box)
        assert box.y0 >= -0.5 and box.y1 <= fig.bbox.height + 0.5, (text.get_text(), box)
        assert 5 <= float(text.get_fontsize()) <= 8.01
    for axis in axes_of(fig):
        boxes = [label.get_window_extent() for label in fitting.shown_labels(axis) if not label.get_rotation() % 90]
        sides = sorted((box.x0, box.x1) if axis is axis.axes.xaxis else (box.y0, box.y1) for box in boxes)
        assert all(one[1] <= other[0] + 0.5 for one, other in pairwise(sides)), (name, sides)
    for ax in fig.axes:
        box = ax.get_window_extent()
        assert box.width > 0.01 * fig.bbox.width and box.height > 0.3 * fig.dpi, "a panel is left"
    (file,) = style.save(fig, tmp_path / "a.pdf")
    assert page(file.read_bytes())[0] == pytest.approx(3.33 * 72, abs=0.01)


def test_titles_next_to_each_other_stay_apart(six: Results) -> None:
    fig = plots.draw(six, "topology", style="paper", width=WIDTH)
    fig.draw_without_rendering()
    boxes = [ax.title.get_window_extent() for ax in fig.axes if ax.get_title()]
    assert len(boxes) == 4 and not any(one.overlaps(other) for one in boxes for other in boxes if one is not other)


@pytest.mark.parametrize(
    ("length", "inches"), [("3.33in", 3.33), ("84mm", 84 / 25.4), ("8.4cm", 8.4 / 2.54), ("252pt", 252 / 72.27), (4, 4.0)]
)
def test_the_page_is_as_wide_as_asked(results: Results, tmp_path: Path, length: Any, inches: float) -> None:
    for look in ("paper", "screen"):
        fig = results.plot("metrics", metrics=["p99_slowdown"], style=look, width=length, height="2.2in")
        (file,) = style.save(fig, tmp_path / "a.pdf")
        assert page(file.read_bytes()) == pytest.approx((72 * inches, 72 * 2.2), abs=0.01)


@pytest.mark.parametrize("length", ["3.33", "3.33 feet", "-1in", "wide", "0.1in", "1000in", float("nan"), True, "infin"])
def test_a_length_has_a_unit_and_bounds(results: Results, length: Any) -> None:
    with pytest.raises(ValueError, match=r"is not a width of a figure\nhint: write a number with `in`, `cm`, `mm` or `pt`"):
        results.plot("metrics", width=length)


def test_a_figure_that_is_higher_than_a_page_warns(six: Results) -> None:
    with pytest.warns(UserWarning, match="more than a page of a paper has"):
        plots.draw(six, "slowdown", style="paper")


def test_a_style_is_known(results: Results) -> None:
    with pytest.raises(ValueError, match="`papr` is not a style of figures; did you mean `paper`"):
        results.plot("metrics", style="papr")


def test_a_long_legend_wraps_in_the_column(six: Results) -> None:
    fig = plots.draw(six, "metrics", metrics=["mean_fct_s"], style="paper")
    fig.draw_without_rendering()
    (legend,) = fig.legends
    columns = {round(text.get_window_extent().x0) for text in legend.get_texts()}
    assert [text.get_text() for text in legend.get_texts()][:2] == ["MERP", "pFabric"] and len(columns) == 2


# Fonts


def test_no_file_has_type_3_fonts(results: Results, tmp_path: Path) -> None:
    for i, look in enumerate(({}, {"style": "paper"}, {"style": "paper", "font": "Times"}, {"font": "DejaVu Serif"})):
        fig = plots.draw(results, "slowdown", at={"load": 0.8}, **look)
        (file,) = style.save(fig, tmp_path / f"{i}.pdf")
        pdf = file.read_bytes()
        assert b"/Type3" not in pdf and b"/FontFile2" in pdf and b"CreationDate" not in pdf, look
        # A program that saves the figure itself gets the same fonts.
        fig.savefig(tmp_path / f"{i}-own.pdf")
        assert b"/Type3" not in (tmp_path / f"{i}-own.pdf").read_bytes()
    with mpl.rc_context({"pdf.fonttype": 3, "ps.fonttype": 3}):
        (file,) = style.save(results.plot("metrics"), tmp_path / "set.pdf")
        results.plot("metrics", metrics=["drops"]).savefig(tmp_path / "a.eps")
    assert b"/Type3" not in file.read_bytes()
    assert "/FontType 42" in (tmp_path / "a.eps").read_text(encoding="latin-1")


def test_pages_of_several_figures_have_no_type_3_fonts(results: Results, tmp_path: Path) -> None:
    from matplotlib.backends.backend_pdf import PdfPages

    with PdfPages(tmp_path / "a.pdf") as pages:
        pages.savefig(results.plot("metrics", metrics=["drops"]))
    assert b"/Type3" not in (tmp_path / "a.pdf").read_bytes()


def test_the_same_pdf_each_time(results: Results, tmp_path: Path) -> None:
    one, other = (style.save(results.plot("metrics"), tmp_path / f"{i}.pdf")[0].read_bytes() for i in (1, 2))
    assert one == other


def test_a_font_is_taken_by_its_name(results: Results) -> None:
    fig = plots.draw(results, "metrics", metrics=["drops"], style="paper", font="stixgeneral")
    assert {text.get_fontname() for text in seen_texts(fig)} == {"STIXGeneral"}
    fig.draw_without_rendering()
    assert {label.get_fontname() for axis in axes_of(fig) for label in fitting.shown_labels(axis)} == {"STIXGeneral"}


def test_a_font_that_is_not_installed_is_replaced_by_its_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "installed", lambda *kinds: {"stixgeneral": "STIXGeneral"})
    with pytest.warns(UserWarning, match="`Times` is not installed: `STIXGeneral` has the same shapes"):
        assert fonts.family("Times") == "STIXGeneral"
    with pytest.raises(
        ValueError, match=r"`Arial` is not installed, nor is one with the same shapes\nhint: install one of Helvetica"
    ):
        fonts.family("Arial")


def test_unknown_fonts_are_named_with_near_ones(results: Results) -> None:
    with pytest.raises(ValueError, match=r"there is no font `DejaVu Sns`; did you mean `DejaVu Sans`"):
        results.plot("metrics", font="DejaVu Sns")
    with pytest.raises(ValueError, match=r"there is no font `Tmes`; did you mean `Times`"):
        results.plot("metrics", font="Tmes")


def test_usetex_says_what_it_lacks(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "found", lambda name: name == "dvipng")
    with pytest.raises(
        ValueError, match=r"`usetex` needs LaTeX, and `latex`, `type1cm.sty` and `type1ec.sty` are not installed\nhint: "
    ):
        results.plot("metrics", font="usetex")


@pytest.mark.skipif(not all(map(fonts.found, fonts.NEEDED)), reason=NO_LATEX)
def test_latex_sets_labels_as_they_are(tmp_path: Path) -> None:
    labels = ("A_b^c 100% & #1", "{x} ~ $y$ \\z", "µ → 东")
    found = small.run(tmp_path, labels, (0.2, 0.8), (1, 2))
    fig = plots.draw(found, "slowdown", statistic="p99", style="paper", font="usetex")
    files = style.save(fig, tmp_path / "a", ["pdf", "png", "svg"])
    assert b"/Type3" not in files[0].read_bytes() and b"/Type1" in files[0].read_bytes()
    assert fig.legends[0].get_texts()[0].get_text() == r"A\_b\textasciicircum{}c 100\% \& \#1"


def test_the_settings_of_the_user_stay(results: Results) -> None:
    with mpl.rc_context({"font.family": "serif", "font.size": 7, "lines.linewidth": 3}):
        fig = results.plot("metrics", metrics=["drops"])
    fig.draw_without_rendering()
    (ax,) = fig.axes
    assert ax.xaxis.label.get_fontsize() == 7 and ax.xaxis.label.get_fontfamily() == ["serif"]
    assert {label.get_fontsize() for label in fitting.shown_labels(ax.xaxis)} == {7}
    assert ax.lines[0].get_linewidth() == 3
    before = dict(mpl.rcParams)
    results.plot("metrics", metrics=["drops"], style="paper", font="STIXGeneral")
    assert dict(mpl.rcParams) == before and appearance.current() == appearance.Look()


# Ticks


def labels_of(low: float, high: float) -> list[str]:
    ax = Figure().add_subplot()
    style.log_axis(ax, "y")
    ax.set_ylim(low, high)
    ticks = [(axis(), formatter()) for axis, formatter in (
        (ax.yaxis.get_majorticklocs, ax.yaxis.get_major_formatter), (ax.yaxis.get_minorticklocs, ax.yaxis.get_minor_formatter),
    )]  # fmt: skip
    return [
        label
        for places, form in ticks
        for x, label in zip(places, form.format_ticks(list(places)), strict=True)
        if label and low <= x <= high
    ]


def test_an_axis_has_one_notation() -> None:
    assert labels_of(0.5, 2e4) == ["1", "10", "100", "1000", "10000"]
    assert labels_of(50, 2e6) == ["10²", "10³", "10⁴", "10⁵", "10⁶"]
    assert labels_of(2e-6, 0.3) == ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹"]
    assert labels_of(8e4, 6e5) == ["10⁵", "2·10⁵", "5·10⁵"]
    assert labels_of(8, 60) == ["10", "20", "50"]


# Chosen panels


def test_an_option_that_a_kind_does_not_take_names_those_that_do(results: Results) -> None:
    with pytest.raises(ValueError, match=r"`fct_cdf` take no `metrics`\nhint: `metrics` do"):
        results.plot("fct_cdf", metrics=["drops"])
    with pytest.raises(ValueError, match=r"`metrics` take no `statistic`\nhint: `slowdown` and `fct_size` do"):
        results.plot("metrics", statistic="p99")
    with pytest.raises(ValueError, match="take no `widht`; did you mean `width`"):
        plots.draw(results, "metrics", widht="3in")


def test_statistics_are_chosen(results: Results) -> None:
    fig = results.plot("slowdown", statistic=["p99", "mean"], at={"load": 0.8})
    assert [ax.get_ylabel() for ax in fig.axes] == ["99th percentile of slowdown", "mean slowdown"]
    assert len(results.plot("fct_size", statistic="p50").axes) == 4
    with pytest.raises(ValueError, match=r"`p98` is not a statistic of this figure; did you mean `p9\d`?"):
        results.plot("slowdown", statistic="p98")


@pytest.mark.parametrize("name", ["metrics", "slowdown", "fct_cdf", "utilisation", "group_cdf", "topology"])
def test_systems_are_chosen_and_ordered(six: Results, name: str) -> None:
    fig = six.plot(name, systems=["DCTCP", "MERP"])
    titles = [ax.get_title().split(",")[0] for ax in fig.axes if "," in ax.get_title()]
    texts = [text.get_text() for legend in fig.legends for text in legend.get_texts() if not text.get_text().startswith("hollow")]
    assert (texts or titles) == ["DCTCP", "MERP"]
    assert {row["system"] for row in rows_of(fig)} == {"DCTCP", "MERP"}


def test_an_unknown_system_is_named(results: Results) -> None:
    with pytest.raises(KeyError, match="there is no system `pFabrik`; did you mean `pFabric`"):
        results.plot("metrics", systems=["pFabrik"])


# Numbers


def rows_of(fig: Figure) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(style.table(fig))))


def test_the_table_of_a_figure_is_what_it_draws(results: Results, tmp_path: Path) -> None:
    fig = results.plot("metrics", metrics=["mean_fct_s", "drops"])
    rows = rows_of(fig)
    assert list(rows[0]) == ["metric", "system", "load", "mean", "ci95_low", "ci95_high"]
    for ax in fig.axes:
        for line, band in zip(ax.get_lines(), ax.collections, strict=True):
            here = [row for row in rows if (row["metric"], row["system"]) == (ax.get_ylabel(), line.get_label())]
            assert [(float(row["load"]), float(row["mean"])) for row in here] == [
                pytest.approx(xy) for xy in np.column_stack(line.get_data())
            ]
            (path,) = band.get_paths()
            edge = {round(float(y), 6) for y in np.asarray(path.vertices)[:, 1]}
            assert {round(max(float(row["ci95_low"]), ax.get_ylim()[0]), 6) for row in here} <= edge
            assert {round(float(row["ci95_high"]), 6) for row in here} <= edge
    fig = results.plot("slowdown", at={"load": 0.8})
    rows = rows_of(fig)
    assert list(rows[0]) == [
        "system",
        "load",
        "statistic",
        "flow_size_kB",
        "slowdown",
        "ci95_low",
        "ci95_high",
        "rests_on_few_flows",
    ]
    drawn = [line for ax in fig.axes for line in ax.get_lines() if line.get_label() in results.systems]
    points = np.concatenate([np.column_stack(line.get_data()) for line in drawn])
    assert [(float(row["flow_size_kB"]), float(row["slowdown"])) for row in rows] == [pytest.approx(xy) for xy in points]
    fig = results.plot("fct_cdf", at={"load": 0.8})
    lines = list(fig.axes[0].get_lines())
    points = np.concatenate([np.column_stack(line.get_data()) for line in lines])
    assert [(float(row["FCT_us"]), float(row["share_of_flows_at_or_below"])) for row in rows_of(fig)] == [
        pytest.approx(xy) for xy in points
    ]
    files = flowloom_plot(results, "metrics", tmp_path / "m.csv")
    assert files == ["m.csv"] and (tmp_path / "m.csv").read_text(encoding="utf-8") == style.table(results.plot("metrics"))


def flowloom_plot(results: Results, kind: str, out: Path) -> list[str]:
    import flowloom

    flowloom.plot(results, kind, out=out)
    return sorted(file.name for file in out.parent.iterdir())


@pytest.mark.parametrize("name", list(KINDS))
def test_every_kind_has_a_table(name: str, six_trained: Results, six_traced: Results) -> None:
    fig = plots.draw(six_traced if KINDS[name].meta.needs in ("samples", "packets") else six_trained, name)
    rows = rows_of(fig)
    assert len(rows) >= 4 and all(re.fullmatch(r"\w+", column) for column in rows[0])
    assert {"DCTCP" if name == "cwnd" else "MERP", "pFabric"} <= {row["system"] for row in rows}
    assert not any(row[column] == "nan" for row in rows for column in row)


def test_a_figure_says_what_its_intervals_are(results: Results, traced: Results, tmp_path: Path) -> None:
    for name in ("metrics", "slowdown", "fct_size"):
        assert "intervals: 95 % (Student's t) over 3 seeds" in results.plot(name).get_supxlabel()
        assert "intervals" not in traced.plot(name).get_supxlabel(), "one seed"
    assert "over 1 to 3 seeds" in cut(tmp_path).plot("metrics").get_supxlabel()


# Tables


def cut(folder: Path) -> Results:
    """Results of a part of a run: one system has one seed."""
    at = ("MERP", "TCP"), 0.5, (1, 2, 3)
    points = [point["point"] for point in small.scenario(*at).points if point["system"] == "MERP" or point["seed"] == 1]
    return small.run(folder, *at, points=points)


def test_a_summary_says_how_many_seeds_there_are(results: Results, traced: Results, tmp_path: Path) -> None:
    assert "95 % confidence interval over 3 seeds" in results.table().note and "one seed, no intervals" in traced.table().note
    assert "over 1 to 3 seeds" in cut(tmp_path).table().note


def test_no_two_columns_have_one_name() -> None:
    import flowloom

    web = {"kind": "poisson", "flows": [20, 40], "load": 0.3, "size": "fixed", "mean": "15KB"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = flowloom.run({"topology": "star", "workload": {"web": web}, "system": [{"transport": "newreno"}]}, seeds=[1, 2])
    head = found.table().head
    assert head[:3] == ["system", "workload.web.flows", "flows"] and len(set(head)) == len(head)


LATEX = tables.Table(["a_b", "x (%)"], [["{50 % & $1 #2} ~^\\", "1.5 ±  0.25"], ["µ → –", "-"], ['<a>|"b"', "-3"]], 1, "one\ntwo %")


def test_a_table_is_escaped_for_latex() -> None:
    assert LATEX.latex().splitlines() == [
        "% one",
        "% two %",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"a\_b & x (\%) \\",
        r"\midrule",
        r"\{50 \% \& \$1 \#2\} \textasciitilde{}\textasciicircum{}\textbackslash{} & 1.5 $\pm$ 0.25 \\",
        r"\textmu{} $\rightarrow$ -- & -- \\",
        r"\textless{}a\textgreater{}\textbar{}" + '"b" & $-$3 ' + r"\\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason=NO_LATEX)
def test_latex_compiles_a_table(results: Results, tmp_path: Path) -> None:
    body = "\n\n".join([LATEX.latex(), results.table().latex()])
    text = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n" + body + "\n\\end{document}\n"
    (tmp_path / "a.tex").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "a.tex"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-800:]


def test_a_table_as_csv_has_means_and_half_intervals_apart(results: Results) -> None:
    table = results.table(["flows", "mean_fct_s"])
    rows = list(csv.reader(io.StringIO(table.csv())))
    assert rows[0] == ["system", "load", "flows", "mean_FCT_ms", "mean_FCT_ms_half_ci95"]
    assert rows[1] == ["MERP", "0.2", "400", *(part.strip() for part in table.rows[0][3].split("±"))]
    labels = tables.Table(["system", "drops"], [['a, "b"', "-"]], 1)
    assert list(csv.reader(io.StringIO(labels.csv()))) == [["system", "drops"], ['a, "b"', ""]]


def test_names_of_columns_are_words() -> None:
    assert words.column("mean group FCT (µs)") == "mean_group_FCT_us" and words.column("group Jain's index") == "group_Jains_index"


# The command line


def test_plot_draws_a_figure_for_a_paper(results: Results, tmp_path: Path) -> None:
    options = {"metrics": "p99_slowdown,drops", "systems": "TCP,MERP", "style": "paper", "width": "3.5in", "height": "2in",
        "font": "STIXGeneral", "format": "pdf,csv", "out": str(tmp_path)}  # fmt: skip
    assert main(["plot", str(results.path), *(f"--{name}={value}" for name, value in options.items())]) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["metrics.csv", "metrics.pdf"]
    assert page((tmp_path / "metrics.pdf").read_bytes()) == pytest.approx((252, 144))
    rows = list(csv.DictReader((tmp_path / "metrics.csv").open(encoding="utf-8")))
    assert list(dict.fromkeys(row["system"] for row in rows)) == ["TCP", "MERP"]
    assert {row["metric"] for row in rows} == {"99th-percentile slowdown", "drops"}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("--kind fct_cdf --statistic p99", "`fct_cdf` take no `statistic`"),
        ("--kind metrics,fct_cdf --metrics drops", "`fct_cdf` take no `metrics`"),
        ("--metrics drops --statistic p99", "no kind of figure takes `metrics` and `statistic` together"),
        ("--kind metrics --metrics drop", "did you mean `drops`?"),
        ("--kind metrics --width 3", "`3` is not a width of a figure"),
        ("--kind metrics --font Tmes", "there is no font `Tmes`"),
        ("--kind metrics --systems pFabrik", "there is no system `pFabrik`; did you mean `pFabric`?"),
    ],
)
def test_a_wrong_option_writes_nothing(
    results: Results, tmp_path: Path, capfd: pytest.CaptureFixture[str], options: str, error: str
) -> None:
    assert main(["plot", str(results.path), "--out", str(tmp_path / "out"), *options.split()]) == 2
    assert error in capfd.readouterr().err and not (tmp_path / "out").exists()


def test_systems_with_commas_are_named_whole(six: Results) -> None:
    assert chosen_systems({"systems": ["TCP, RTO 200 ms", "pFabric,MERP"]}, six) == ["TCP, RTO 200 ms", "pFabric", "MERP"]


@pytest.mark.parametrize(
    ("form", "first"), [("text", "system"), ("latex", "% mean"), ("csv", "system,load,drops"), ("markdown", "| system")]
)
def test_table_prints_and_writes(
    results: Results, tmp_path: Path, capfd: pytest.CaptureFixture[str], form: str, first: str
) -> None:
    asked = ["table", str(results.path), "--format", form, "--metrics", "drops"]
    assert main(asked) == 0
    printed = capfd.readouterr().out
    assert printed.startswith(first)
    assert main([*asked, "--out", str(tmp_path / "t")]) == 0
    assert (tmp_path / "t").read_text(encoding="utf-8") == printed
    assert main([*asked, "--out", str(tmp_path)]) == 5, "a folder"


def test_drawing_is_undone_after_a_file_was_written(results: Results, tmp_path: Path) -> None:
    fig = results.plot("fct_cdf", at={"load": 0.8})
    before = [
        (type(axis.get_major_locator()), type(axis.get_minor_locator()), len(axis.axes.get_children())) for axis in axes_of(fig)
    ]
    style.save(fig, tmp_path / "a")
    assert before == [
        (type(axis.get_major_locator()), type(axis.get_minor_locator()), len(axis.axes.get_children())) for axis in axes_of(fig)
    ]


def test_kinds_know_their_options() -> None:
    assert plots.takers(["metrics"]) == ["metrics"] and set(plots.takers(["statistic"])) == {"slowdown", "fct_size"}
