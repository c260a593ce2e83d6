"""The explorer in a real browser: what it computes, and what its controls do."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

import tempergat
from tempergat import TrainedModel, UserError
from tempergat.comparison.explorer import model_record
from tempergat.comparison.explorer.model_record import ModelRecord, record
from tempergat.comparison.explorer.page import explorer_page
from tempergat.data import MASKS, Dataset, csbm, normalize_rows, to_dense
from tempergat.nn import model_values
from tests.support.browser import opened
from tests.support.tiny_graph import write_recipe, write_tables


def write_explorer(model: TrainedModel, path: Path, graph: Any = None) -> ModelRecord:
    recorded = record(model, graph)
    path.write_text(explorer_page(recorded))
    return recorded


SMALL = 1e-3
# Method, changed settings: all that the page computes itself.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gate after attention": ("temp_gated", {}),
    "gate first": ("gated_temp", {"norm": "batch", "act": "relu"}),
    "gatv2": ("temp_gated_v2", {"residual": True, "num_layers": 3}),
    "transformer": ("temp_gated_transformer", {"num_layers": 3}),
    "gatv2, gate first": ("gated_temp_v2", {}),
    "gate of heads": ("head_gated_v2", {"num_layers": 3}),
    "without temperature and gate": ("gat", {}),
}


def graph(n: int = 60) -> Dataset:
    return csbm(n=n, a=10.0, b=4.0, d=8, mu=0.6)


def trained(folder: Path, name: str = "gate after attention") -> TrainedModel:
    method, changes = VARIANTS[name]
    recipe = write_recipe(folder / "recipe.yaml", **changes)
    # Two heads in the last layer, whose outputs are averaged.
    recipe.write_text(recipe.read_text().replace("out_heads: 1", "out_heads: 2"))
    return tempergat.train(graph(), method, recipe=recipe, device="cpu", progress=False)


@pytest.fixture(name="model", scope="module")
def one_model(tmp_path_factory: pytest.TempPathFactory) -> TrainedModel:
    return trained(tmp_path_factory.mktemp("model"))


@pytest.fixture(name="file", scope="module")
def one_page(model: TrainedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "explore.html"
    write_explorer(model, path, graph())
    return path


def go_to(page: Any, node: object) -> None:
    page.fill("[data-at=find]", str(node))
    page.press("[data-at=find]", "Enter")


def slide(page: Any, power: float) -> None:
    page.eval_on_selector(
        "[data-at=temperature]",
        "(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }",
        power,
    )


def shown_coefficients(page: Any) -> dict[str, float]:
    """The coefficients in the page's table, by neighbour."""
    weights: dict[str, float] = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('[data-at=rows] tr')].map("
        "(row) => [row.cells[0].textContent, Number(row.cells[3].dataset.now)]))"
    )
    return weights


def shown_probabilities(page: Any) -> list[float]:
    shares: list[float] = page.evaluate(
        "[...document.querySelectorAll('[data-probability]')].map("
        "(bar) => Number(bar.dataset.probability))"
    )
    return shares


def check_node(page: Any, model: Any, data: Any, node: int) -> None:
    """Compares coefficients of all layers and the prediction with the model's."""
    scores, layers = model_values(model, data)
    go_to(page, node)
    expected = scores.softmax(dim=-1)[node].tolist()
    assert shown_probabilities(page) == pytest.approx(expected, abs=SMALL)
    for number, values in enumerate(layers):
        layer = values.attention
        page.select_option("[data-at=layer]", str(number))
        mine = (data.edge_index[1] == node) & layer.used
        heads = layer.weights.size(1)
        for head in (0,) if heads == 1 else (-1, heads - 1):
            page.select_option("[data-at=head]", str(head))
            pick = (lambda w: w.mean(-1)) if head < 0 else (lambda w, h=head: w[..., h])
            weights = pick(layer.weights)
            wanted = {
                str(int(data.edge_index[0, place])): float(weights[place])
                for place in mine.nonzero().squeeze(1).tolist()
            }
            if layer.self_loops is not None:
                wanted["itself"] = float(pick(layer.self_loops)[node])
            assert shown_coefficients(page) == pytest.approx(wanted, abs=SMALL)


@pytest.mark.parametrize(
    "name",
    [
        name if number == 0 else pytest.param(name, marks=pytest.mark.slow)
        for number, name in enumerate(VARIANTS)
    ],
)
def test_the_page_computes_what_the_model_does_at_any_temperature(
    name: str, tmp_path: Path, chromium: Any
) -> None:
    model = trained(tmp_path, name)
    data = graph().data
    file = tmp_path / "explore.html"
    write_explorer(model, file, graph())
    module: Any = model.module
    with opened(chromium, file) as page:
        for node in (0, 17):
            check_node(page, module, data, node)
        if module.convs[0].theta is None:
            return
        # Twice the temperature in the first layer, half of it in the last.
        for number, power in ((0, 1.0), (len(module.convs) - 1, -1.0)):
            page.select_option("[data-at=layer]", str(number))
            slide(page, power)
            with torch.no_grad():
                wanted = module.convs[number].temperature * 2.0**power
                module.convs[number].theta.copy_(torch.log(torch.expm1(wanted)))
        for node in (17, 31):
            check_node(page, module, data, node)


@pytest.mark.slow
def test_cora_is_there_as_a_whole_and_computed_as_by_the_model(
    tmp_path: Path, chromium: Any
) -> None:
    try:
        dataset = tempergat.load("cora")
    except UserError as error:
        pytest.skip(f"Cora is not here: {error}")
    model = tempergat.train(
        dataset,
        "temp_gated",
        device="cpu",
        progress=False,
        settings={"epochs": 30},
    )
    file = tmp_path / "explore.html"
    assert write_explorer(model, file).sample.is_whole
    assert file.stat().st_size < 3e6
    x = to_dense(dataset.data.x).float()
    x = normalize_rows(x) if model.config.normalize_features else x
    data = Data(x=x, edge_index=dataset.data.edge_index)
    with opened(chromium, file) as page:
        # The last one has 168 neighbours.
        for node in (0, 1986, 1358):
            check_node(page, model.module, data, node)


@pytest.mark.slow
def test_of_a_large_graph_the_nodes_in_the_page_are_exact(
    tmp_path: Path, chromium: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_record, "MOST_CHARACTERS", 20_000)
    monkeypatch.setattr(model_record, "_LEAST_CHARACTERS", 0)
    large = csbm(n=400, a=5.0, b=2.0, d=8, mu=0.6)
    recipe = write_recipe(tmp_path / "recipe.yaml")
    model = tempergat.train(
        large, "temp_gated", recipe=recipe, device="cpu", progress=False
    )
    file = tmp_path / "explore.html"
    sample = write_explorer(model, file, large).sample
    shown = sample.nodes[sample.shown].tolist()
    assert 2 < len(shown) < 400
    with opened(chromium, file) as page:
        for node in shown[:3]:
            check_node(page, model.module, large.data, node)
        absent = next(node for node in range(400) if node not in shown)
        go_to(page, absent)
        said = page.inner_text("[data-at=said]")
        assert f"no node or class {absent} here; the page holds only some" in said


def test_a_layer_whose_effect_is_not_computed_changes_alone(
    tmp_path: Path, chromium: Any
) -> None:
    recipe = write_recipe(tmp_path / "recipe.yaml", epochs=2, norm="layer")
    model = tempergat.train(
        graph(), "temp_gated", recipe=recipe, device="cpu", progress=False
    )
    file = tmp_path / "explore.html"
    write_explorer(model, file, graph())
    data = graph().data
    with opened(chromium, file) as page:
        go_to(page, 5)
        for number, layer in enumerate(tempergat.attention(model, data)):
            page.select_option("[data-at=layer]", str(number))
            own = shown_coefficients(page)["itself"]
            assert own == pytest.approx(float(layer.self_loops[5].mean()), abs=SMALL)
            # The last layer has one head, and no mean of several.
            offered = page.locator("[data-at=head] option").all_text_contents()
            means = ["mean of all heads", "head 1", "head 2"]
            assert offered == (means if number == 0 else ["head 1"])
        slide(page, 4.0)
        even = 1 / len(shown_coefficients(page))
        assert shown_coefficients(page)["itself"] == pytest.approx(even, abs=0.02)
        assert page.is_hidden("[data-at=classes]")


def test_the_slider_changes_the_drawing_and_goes_back(
    file: Path, chromium: Any
) -> None:
    with opened(chromium, file) as page:
        go_to(page, 5)
        before, shares = shown_coefficients(page), shown_probabilities(page)
        page.focus("[data-at=temperature]")
        for _ in range(5):
            page.keyboard.press("PageDown")
        assert shown_coefficients(page) != before
        assert shown_probabilities(page) != shares
        assert page.inner_text("[data-at=value]").endswith(" learned)")
        page.click("text=reset to the learned temperatures")
        assert shown_coefficients(page) == before
        assert shown_probabilities(page) == shares
        assert page.inner_text("[data-at=value]").endswith(" (learned)")


def test_the_score_of_all_nodes_follows_the_temperature(
    model: TrainedModel, file: Path, chromium: Any
) -> None:
    data = graph().data
    test = data.test_mask
    right = int((model.predict(data)[test] == data.y[test]).sum())
    with opened(chromium, file) as page:
        page.wait_for_selector(f"[data-at=score][data-right='{right}']")
        assert f"{right} of {int(test.sum())} test nodes" in page.inner_text(
            "[data-at=score]"
        )


def test_jumping_goes_through_the_misclassified_nodes(
    model: TrainedModel, file: Path, chromium: Any
) -> None:
    data = graph().data
    is_wrong = model.predict(data) != data.y
    wrong = (is_wrong & data.test_mask).nonzero().squeeze(1).tolist()
    every = is_wrong.nonzero().squeeze(1).tolist()
    assert 1 < len(wrong) < len(every)
    with opened(chromium, file) as page:
        # It begins with one of them.
        assert page.inner_text("[data-at=title]") in [f"Node {node}" for node in wrong]
        go_to(page, wrong[0])
        assert page.inner_text("[data-at=verdict]") == "✕ wrong"
        page.click("text=next wrong")
        assert page.inner_text("[data-at=title]") == f"Node {wrong[1]}"
        page.click("text=previous wrong")
        assert page.inner_text("[data-at=title]") == f"Node {wrong[0]}"
        page.click("text=previous wrong")
        assert page.inner_text("[data-at=title]") == f"Node {wrong[-1]}"
        last = f"wrong test node {len(wrong)} of {len(wrong)}"
        assert page.inner_text("[data-at=said]") == last
        page.select_option("[data-at=among]", "all")
        go_to(page, every[-1])
        page.click("text=next wrong")
        assert page.inner_text("[data-at=title]") == f"Node {every[0]}"
        assert page.inner_text("[data-at=said]") == f"wrong node 1 of {len(every)}"


def test_nodes_without_a_label_are_shown_and_searched_as_unknown(
    model: TrainedModel, tmp_path: Path, chromium: Any
) -> None:
    data = graph().data
    predicted = model.predict(data)
    data.y[::2] = -1
    for mask in MASKS:
        data[mask][::2] = False
    node = 6
    neighbours = data.edge_index[0, data.edge_index[1] == node]
    file = tmp_path / "explore.html"
    write_explorer(model, file, data)
    with opened(chromium, file) as page:
        # The graph has other labels than in training, so its parts are not known.
        assert page.is_hidden("[data-at=among]")
        go_to(page, node)
        about = f"class not known; predicted class {predicted[node]}"
        assert page.inner_text("[data-at=about]") == about
        signs = page.locator("[data-at=star] .unknown").all_text_contents()
        assert len(signs) == 1 + int((data.y[neighbours] < 0).sum())
        assert all(sign.endswith("?") for sign in signs)
        assert "question mark: class not known" in page.inner_text("figcaption")
        page.fill("[data-at=find]", "class 1")
        count = int((data.y == 1).sum())
        guessed = int(((data.y < 0) & (predicted == 1)).sum())
        said = page.inner_text("[data-at=said]")
        assert said.startswith(f"{count} nodes found")
        assert f"{guessed} nodes of unknown class predicted class 1" in said
        assert page.locator("[data-at=found] .unknown").count() == 0
        page.fill("[data-at=find]", "predicted class 1")
        said = page.inner_text("[data-at=said]")
        assert said.startswith(f"{int((predicted == 1).sum())} nodes found")


def test_a_graph_without_labels_shows_predictions_only(
    model: TrainedModel, tmp_path: Path, chromium: Any
) -> None:
    data = graph().data
    del data.y
    file = tmp_path / "explore.html"
    write_explorer(model, file, data)
    with opened(chromium, file) as page:
        page.click("text=next wrong")
        assert page.inner_text("[data-at=said]") == "No wrong node in this page."
        assert page.inner_text("[data-at=about]").startswith("class not known; ")
        assert page.locator("[data-at=star] .k0, [data-at=star] .k1").count() == 0
        assert "as no class is known" in page.inner_text("[data-at=heat-classes]")


def test_the_weights_in_the_picture_sum_to_one(file: Path, chromium: Any) -> None:
    with opened(chromium, file) as page:
        go_to(page, 5)
        texts = page.locator("[data-at=star] text:not(.halo)").all_text_contents()
        weights = {
            text.split(" · ")[0]: float(text.split(" · ")[1])
            for text in texts
            if " · " in text
        }
        assert "itself" in weights
        assert sum(weights.values()) == pytest.approx(1.0, abs=0.06)


def test_search_finds_ids_and_classes_and_says_what_is_not_there(
    file: Path, chromium: Any
) -> None:
    y = graph().data.y
    with opened(chromium, file) as page:
        go_to(page, 42)
        assert page.inner_text("[data-at=title]") == "Node 42"
        page.fill("[data-at=find]", "class 1")
        count = int((y == 1).sum())
        said = page.inner_text("[data-at=said]")
        assert said == f"{count} nodes found, the first 12 listed"
        first = int((y == 1).nonzero()[0])
        page.click("[data-at=found] button >> nth=0")
        assert page.inner_text("[data-at=title]") == f"Node {first}"
        go_to(page, "nobody")
        assert page.inner_text("[data-at=title]") == f"Node {first}"
        assert "There is no node or class nobody here." in page.inner_text(
            "[data-at=said]"
        )


def test_a_neighbour_a_head_and_a_dimension_can_be_chosen(
    file: Path, chromium: Any
) -> None:
    with opened(chromium, file) as page:
        go_to(page, 5)
        neighbour = page.eval_on_selector(
            "[data-at=rows] tr:nth-child(2) button", "(e) => e.textContent"
        )
        page.click("text=All neighbours as a table")
        page.click(f"[data-at=rows] button:text-is('{neighbour}')")
        assert page.inner_text("[data-at=title]") == f"Node {neighbour}"
        page.click("[data-layer='0'][data-head='1']")
        assert page.input_value("[data-at=layer]") == "0"
        assert page.input_value("[data-at=head]") == "1"
        page.click("rect[data-dimension='3'] >> nth=0")
        assert page.input_value("[data-at=dimension]") == "3"
        assert page.inner_text("[data-at=gate-words]").startswith("Dimension 3 is most")
        page.select_option("[data-at=gate-layer]", "1")
        assert "of layer 1" in page.inner_text("[data-at=opens]")


@pytest.mark.slow
def test_gates_of_heads_are_shown_by_head(tmp_path: Path, chromium: Any) -> None:
    model = trained(tmp_path, "gate of heads")
    file = tmp_path / "explore.html"
    write_explorer(model, file, graph())
    layer: Any = model.module.convs[0]
    with opened(chromium, file) as page:
        last = page.get_attribute("[data-at=dimension]", "max")
        assert last == str(layer.heads - 1)
        note = page.inner_text("[data-at=dimensions-note]")
        assert f"multiplies all its {layer.out_channels} channels" in note


def test_only_positive_weights_open_a_gate(file: Path, chromium: Any) -> None:
    with opened(chromium, file) as page:
        for dimension in range(8):
            page.fill("[data-at=dimension]", str(dimension))
            opens = page.locator("[data-at=opens] .note").all_inner_texts()
            closes = page.locator("[data-at=closes] .note").all_inner_texts()
            assert not any(weight.startswith("\N{MINUS SIGN}") for weight in opens)
            assert all(weight.startswith("\N{MINUS SIGN}") for weight in closes)
            assert opens or closes


def test_words_of_tables_show_as_text(tmp_path: Path, chromium: Any) -> None:
    folder = tmp_path / 'a"><img src=x>'
    names = [
        "<script>alert(1)</script>",
        *(f"organisation-no-{n}" for n in range(1, 20)),
    ]
    words = write_tables(folder, names, feature="<b>")
    recipe = write_recipe(tmp_path / "recipe.yaml", epochs=2)
    model = tempergat.train(
        folder, "temp_gated", recipe=recipe, split="40/30/30", progress=False
    )
    file = tmp_path / "explore.html"
    write_explorer(model, file, folder)
    with opened(chromium, file) as page:
        go_to(page, names[0])
        assert page.inner_text("[data-at=title]") == f"Node {names[0]}"
        drawn = page.locator("[data-at=star] text").all_text_contents()
        ids = {text.split(" · ")[0] for text in drawn if text.startswith("organ")}
        assert ids == {"organis…n-no-1", "organis…-no-19"}
        bars = page.inner_text("[data-at=bars]")
        assert all(word in bars for word in words)
        assert page.locator("img").count() == 0
        inputs = page.locator("[data-at=opens], [data-at=closes]").all_inner_texts()
        assert "<b>" in "".join(inputs)
        go_to(page, "<script>")
        assert page.inner_text("[data-at=verdict]")


def test_explanations_stand_behind_about_so_that_the_picture_comes_first(
    file: Path, chromium: Any
) -> None:
    with opened(chromium, file, viewport={"width": 1280, "height": 800}) as page:
        explained = page.get_by_text("Layers and heads are counted from 1")
        assert explained.is_hidden()
        assert page.locator("[data-at=star] svg").bounding_box()["y"] < 480
        page.click("text=About")
        assert explained.is_visible()


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1920, "light")])
def test_the_page_fits_every_screen(
    width: int, theme: str, file: Path, chromium: Any
) -> None:
    size = {"width": width, "height": 900}
    with opened(chromium, file, viewport=size, color_scheme=theme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.get_attribute("html", "data-theme") == theme


def test_controls_beside_one_another_have_one_height(file: Path, chromium: Any) -> None:
    with opened(chromium, file, viewport={"width": 1280, "height": 800}) as page:
        heights = page.eval_on_selector_all(
            ".tools :is(input, select, button)",
            "all => all.filter(e => e.offsetHeight).map(e => e.offsetHeight)",
        )
    assert len(heights) > 5
    assert len(set(heights)) == 1


def test_screen_readers_get_names_and_the_verdict(file: Path, chromium: Any) -> None:
    with opened(chromium, file) as page:
        go_to(page, 5)
        unnamed = page.evaluate(
            "[...document.querySelectorAll('button, input, select')].filter((e) => "
            "!e.textContent.trim() && !e.getAttribute('aria-label') && "
            "!(e.labels && e.labels.length)).map((e) => e.outerHTML)"
        )
        assert unnamed == []
        spoken = page.eval_on_selector("[data-at=spoken]", "(e) => e.textContent")
        assert spoken.startswith("Node 5: class ")
        text = page.get_attribute("[data-at=temperature]", "aria-valuetext")
        assert text.startswith("temperature ")
