"""Suggestions for misspelt names."""

from tempergat.base import did_you_mean, suggest_one_of


def test_close_names_are_suggested_and_others_are_not() -> None:
    assert did_you_mean("gatv", ["gcn", "gat", "gatv2"]).startswith("did you mean gat")
    assert did_you_mean("xyz", ["gcn", "gat"]) == ""


def test_upper_case_does_not_hide_a_name() -> None:
    assert did_you_mean("CORAA", ["cora", "pubmed"]) == "did you mean cora? "


def test_several_close_names_are_all_given() -> None:
    known = ["gat", "gatv2", "mlp"]
    assert did_you_mean("gatv", known) == "did you mean gatv2 or gat? "


def test_without_a_close_name_all_are_listed() -> None:
    assert suggest_one_of("zzz", ["gcn", "gat"]) == "choose one of gat, gcn"
    assert suggest_one_of("gaat", ["gcn", "gat"]) == "did you mean gat?"
