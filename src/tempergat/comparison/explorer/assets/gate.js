// The part of the page about gates; draws them for the layer, dimension and node chosen.
const drawGate = (at, model, nodes, state) => {
  const layer = model.layers[state.gateLayer];
  // Later layers' gates are only known where all that they depend on is in the page.
  const known = state.gateLayer === 0 || !model.exact ? nodes.every : nodes.open;
  // By the true class; by the predicted one only if no class is known.
  const labelled = known.filter((node) => nodes.labels[node] >= 0);
  const [judged, classes] = labelled.length ? [labelled, nodes.labels] : [known, nodes.predicted];
  const means = model.gateMeans(state.gateLayer, judged, (node) => classes[node]);
  const values = known.map((node) => model.state(state.gateLayer, node).gate[state.dimension]);
  const spread = (k) => {
    const found = means.map((row) => row[k]).filter((value) => value !== null);
    return Math.max(...found) - Math.min(...found);
  };
  let dimensions = Array.from({ length: layer.gateWidth }, (_, k) => k);
  at("dimensions-note").textContent = layer.gate === "head" ? `Here a dimension is a head, counted from 0: one gate multiplies all its ${layer.channels} channels.` : "";
  if (dimensions.length > 96) {
    dimensions = dimensions.sort((a, b) => spread(b) - spread(a)).slice(0, 96).sort((a, b) => a - b);
    at("dimensions-note").textContent = `The 96 of ${layer.gateWidth} dimensions whose gate differs most between classes.`;
  }
  const ends = means.flat().filter((value) => value !== null);
  const range = [Math.min(...ends), Math.max(...ends)];
  at("heat-classes").textContent = labelled.length ? "that are known to be of the class" : "predicted to be of the class, as no class is known";
  at("heat-range").textContent = `From ${range[0].toFixed(2)} (weakest colour) to ${range[1].toFixed(2)} (strongest).`;
  at("heat").replaceChildren(heatOf(range, means, dimensions, state.dimension, model.classes.map((_, place) => nodes.classOf(place))));
  const own = model.state(state.gateLayer, state.node).gate[state.dimension];
  at("histogram").replaceChildren(histogramOf(values, own, `Gates of dimension ${state.dimension}`));
  at("dimension").max = layer.gateWidth - 1;
  at("dimension").value = state.dimension;
  const open = means.map((row, place) => [row[state.dimension], place]).filter(([value]) => value !== null).sort((a, b) => b[0] - a[0]);
  const [most, least] = [open[0], open[open.length - 1]];
  at("gate-words").textContent = `Dimension ${state.dimension} is most open for ${nodes.classOf(most[1])} (${most[0].toFixed(2)} on average) and least for ${nodes.classOf(least[1])} (${least[0].toFixed(2)}).`;
  const inputs = layer.strongest[state.dimension];
  const { features } = nodes.page;
  const input = (number) => {
    if (state.gateLayer > 0) return `dimension ${number} of layer ${state.gateLayer}`;
    return (features && features[number]) || `feature ${number}`;
  };
  const listOf = (found) => found.map(([number, weight]) => make("li", {}, `${input(number)} `, make("span", { class: "note" }, weight.toFixed(3).replace("-", "\u2212"))));
  // Of few inputs the strongest may all have one sign.
  at("opens").replaceChildren(...listOf(inputs.filter(([, weight]) => weight > 0)));
  at("closes").replaceChildren(...listOf(inputs.filter(([, weight]) => weight < 0).reverse()));
};
