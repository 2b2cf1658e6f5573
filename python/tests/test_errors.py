"""Errors and warnings as the programs that use flowloom see them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import flowloom
import pytest
from flowloom import Results
from flowloom.base.errors import InputError, UnknownNameError
from flowloom.figures import fonts

HEAVY = {
    "topology": {"kind": "star", "hosts": 4},
    "workload": {"web": {"kind": "poisson", "flows": 20, "load": 1.5}},
    "system": [{"transport": "newreno"}],
}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda results: results.select({"rate": 1}),
        lambda results: results.table(at={"load": 9}),
        lambda results: results.flows(["fct_p"]),
        lambda results: results.plot(systems=["pFabrik"]),
    ],
)
def test_the_text_of_an_unknown_name_has_its_hint_in_a_line_of_its_own(
    results: Results, wrong: Callable[[Results], object]
) -> None:
    with pytest.raises(KeyError) as found:
        wrong(results)
    first, hint = str(found.value).split("\n")
    assert "`" in first and first[0] not in "'\"" and hint.startswith("hint: ")


def lines(caught: pytest.WarningsRecorder) -> set[str]:
    """The files of the lines at which warnings were raised."""
    return {Path(one.filename).name for one in caught}


def test_warnings_have_the_line_of_the_program() -> None:
    with pytest.warns(flowloom.ScenarioWarning) as caught:
        flowloom.run(HEAVY)
        flowloom.Scenario.from_dict(HEAVY).run()
    assert lines(caught) == {Path(__file__).name}


def test_warnings_of_figures_have_the_line_of_the_program(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "installed", lambda *kinds: {"stixgeneral": "STIXGeneral"})
    with pytest.warns(UserWarning, match="`Times` is not installed") as caught:
        results.plot("metrics", metrics=["drops"], font="Times")
        flowloom.plot(results, "metrics", metrics=["drops"], font="Times")
    assert lines(caught) == {Path(__file__).name}
    assert len({one.lineno for one in caught}) == 2


def test_an_error_of_a_worker_arrives_as_it_was_raised() -> None:
    for error in (InputError("wrong"), UnknownNameError("no `x`")):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error)
