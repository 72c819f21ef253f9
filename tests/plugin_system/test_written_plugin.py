"""What is read of a plugin's source is what its import says."""

import pytest

from smmd_bench.errors import UserError
from smmd_bench.plugin_system import registry
from smmd_bench.plugin_system.parameters import parameters_of
from smmd_bench.plugin_system.written_plugin import (
    written_parameters,
    written_summary,
    written_text,
)

OWN = [
    (group, name, point)
    for group in registry.GROUPS
    for name, point in registry.own_points(group).items()
]


@pytest.mark.parametrize(("group", "name", "point"), OWN)
def test_the_summary_and_the_parameters_of_first_party_plugins(group, name, point):
    plugin = registry.entry(group, name).plugin
    assert written_summary(point) == (plugin.__doc__ or "").partition("\n")[0]
    assert written_parameters(point) in (None, list(parameters_of(plugin)))
    assert (written_parameters(point) is None) == (plugin.__bases__ != (object,))


@pytest.mark.parametrize(
    ("name", "point"), [(name, point) for group, name, point in OWN if group == "reports"]
)
def test_what_a_report_shows_of_the_paper(name, point):
    assert written_text(point, "paper") == registry.entry("reports", name).plugin.paper


def test_a_mistyped_parameter_is_told_without_the_plugin(monkeypatch):
    monkeypatch.setattr(registry, "entry", None)
    registry.require_known("losses", ["smmd[lambda=2,sigma=1]", "ce"])
    with pytest.raises(UserError, match="Unknown parameter 'sgma' of smmd: did you mean sigma"):
        registry.require_known("losses", ["smmd[sgma=2]"])
