// The controls of the page: which node, layer, head and temperature are shown.
const start = (section) => {
  const page = JSON.parse(section.querySelector("script[type='application/json']").textContent);
  const model = new Model(page);
  const learned = model.learned();
  const nodes = new Nodes(page);
  const at = (name) => section.querySelector(`[data-at="${name}"]`);
  const state = { node: 0, layer: 0, head: 0, dimension: 0, gateLayer: 0 };

  // The mean of all heads, or the only one.
  const chooseLayer = (layer) => {
    state.layer = layer;
    state.head = model.layers[layer].heads === 1 ? 0 : -1;
  };
  // What a layer and a head see at the node: its neighbours, the strongest first.
  const viewOf = (layer, head) => {
    const sources = model.sources(state.node);
    const now = model.attention(layer, state.node, head);
    const before = learned.attention(layer, state.node, head);
    let own = null;
    const neighbours = [];
    sources.forEach((other, slot) => {
      if (other === state.node && slot === sources.length - 1) own = now[slot];
      neighbours.push({ ...nodes.seen(other, now[slot]), slot, learned: before[slot] });
    });
    if (own !== null) neighbours.pop();
    const self = own === null ? null : { weight: own, learned: before[before.length - 1] };
    // By the learned weight, so that nothing moves while the temperature is dragged.
    neighbours.sort((a, b) => b.learned - a.learned);
    return { node: nodes.seen(state.node, own, guessNow()), neighbours, own, self, now };
  };
  const guessNow = () => {
    if (!model.exact) return nodes.predicted[state.node];
    const shares = model.probabilities(state.node);
    return shares.indexOf(Math.max(...shares));
  };

  const layerName = (number) => `layer ${number + 1}`;
  const headName = () => (state.head < 0 ? "mean of all heads" : `head ${state.head + 1}`);

  const drawNode = () => {
    const view = viewOf(state.layer, state.head);
    const { node, neighbours } = view;
    const name = `Node ${node.name} and its neighbours in ${layerName(state.layer)}, ${headName()}`;
    // On a phone the same letters need a smaller drawing.
    const size = section.clientWidth < 500 ? 310 : 460;
    at("star").replaceChildren(starOf(view, size, name));
    const rest = neighbours.slice(MOST_DRAWN);
    const left = rest.reduce((sum, other) => sum + other.weight, 0);
    at("left").textContent = rest.length
      ? `Of ${neighbours.length} neighbours those ${MOST_DRAWN} with the largest attention weights at the learned temperature are drawn; the others have ${left.toFixed(2)} together.`
      : "";
    const verdict = node.right === null ? "" : node.right ? "right" : "wrong";
    at("verdict").className = `verdict ${verdict === "right" ? "better" : "worse"}`;
    at("verdict").textContent = verdict ? (verdict === "right" ? "✓ right" : "✕ wrong") : "";
    at("title").textContent = `Node ${node.name}`;
    at("about").textContent = [node.words, nodes.partOf(state.node)].filter(Boolean).join("; ");
    const first = neighbours.reduce((a, b) => (b.weight > a.weight ? b : a), neighbours[0]);
    const strongest = first ? `, largest attention weight: ${first.weight.toFixed(2)} to node ${first.name}` : "";
    const count = `${neighbours.length} ${neighbours.length === 1 ? "neighbour" : "neighbours"}`;
    at("spoken").textContent = `Node ${node.name}: ${node.words}${verdict ? `, ${verdict}` : ""}. ${count}${strongest}.`;
    drawTable(view);
    drawClasses();
  };
  const drawTable = (view) => {
    const rows = view.neighbours.slice(0, 200).map((other) => {
      const link = other.canOpen
        ? make("button", { type: "button", "data-node": other.number }, other.name)
        : other.name;
      return rowOf(make("th", { scope: "row" }, link), other.words, other);
    });
    if (view.self) {
      rows.unshift(rowOf(make("th", { scope: "row" }, "itself"), "self-loop", view.self));
    }
    at("rows").replaceChildren(...rows);
    at("cut").textContent = view.neighbours.length > 200 ? `The first 200 of ${view.neighbours.length} neighbours.` : "";
  };
  const rowOf = (heading, words, { weight, learned: before }) => make("tr", {}, heading,
    make("td", {}, words), make("td", { "data-learned": before }, before.toFixed(4)),
    make("td", { "data-now": weight }, weight.toFixed(4)));

  const drawClasses = () => {
    at("classes").hidden = !model.exact;
    if (!model.exact) return;
    const [before, now] = [learned, model].map((one) => one.probabilities(state.node));
    const bars = model.classes.map((name, place) => {
      const bar = make("div", { class: `bar-of ${lookOf(place)}`, "data-probability": now[place] });
      const fill = make("span", { class: "fill" });
      fill.style.width = `${100 * now[place]}%`;
      const tick = make("span", { class: "was", title: `learned: ${before[place].toFixed(3)}` });
      tick.style.left = `${100 * before[place]}%`;
      bar.append(fill, tick);
      const marks = [nodes.labels[state.node] === place ? "true class" : "", now[place] === Math.max(...now) ? "predicted" : ""];
      const said = make("span", { class: "name" }, keyOf(place), ` ${nodes.classOf(place)} `,
        make("span", { class: "note" }, marks.filter(Boolean).join(", ")));
      return make("li", {}, said, make("span", { class: "share" }, now[place].toFixed(3)), bar);
    });
    at("bars").replaceChildren(...bars);
  };

  // How many nodes are right at this temperature, over all that the page can compute.
  let waiting = 0;
  const drawScore = () => {
    clearTimeout(waiting);
    const { labelled, tested, labels, predicted } = nodes;
    // In a sample wrong nodes are as frequent as others, so parts say nothing there.
    const [chosen, kind] = page.whole && tested.length ? [tested, "test"] : [labelled, "labelled"];
    at("score").textContent = "";
    if (!model.exact || !chosen.length) return;
    waiting = setTimeout(() => {
      const right = chosen.filter((node) => {
        const out = model.output(model.layers.length - 1, node);
        return out.indexOf(Math.max(...out)) === labels[node];
      }).length;
      const before = chosen.filter((node) => predicted[node] === labels[node]).length;
      const share = (count) => `${((100 * count) / chosen.length).toFixed(1)}\u00a0%`;
      const changed = model.layers.some((layer) => layer.factor !== 1);
      at("score").textContent = `${right} of ${chosen.length.toLocaleString("en")} ${kind} nodes in this page are right (${share(right)})`
        + (changed ? `; ${before} (${share(before)}) at the learned temperatures.` : ".")
        + (page.whole ? "" : " Wrong nodes were drawn on purpose, so this is no estimate for the graph.");
      at("score").dataset.right = right;
    }, 120);
  };

  const drawHeads = () => {
    // Every head has the neighbours where the large drawing has them.
    const places = new Map(viewOf(state.layer, state.head).neighbours.map((other, place) => [other.slot, place]));
    const groups = model.layers.map((layer, number) => {
      const list = make("div", { class: "multiples" });
      for (let head = 0; head < layer.heads; head += 1) {
        const view = viewOf(number, head);
        view.neighbours.sort((a, b) => places.get(a.slot) - places.get(b.slot));
        const entropy = view.now.reduce((sum, p) => sum - (p > 0 ? p * Math.log(p) : 0), 0);
        const words = `${layerName(number)}, head ${head + 1}`;
        const button = make("button", {
          type: "button", class: "multiple", "data-head": head, "data-layer": number,
          "aria-pressed": String(number === state.layer && head === state.head),
          "aria-label": `Show ${words}`,
        }, starOf(view, 120, words), make("span", {}, `head ${head + 1}`),
        make("span", { class: "note" }, `${Math.exp(entropy).toFixed(1)} of ${view.now.length}`));
        list.append(button);
      }
      const temperature = layer.learned ? `, learned temperature ${meanOf(layer.temperature).toFixed(3)}` : ", without a temperature";
      return make("div", {}, make("h4", {}, `Layer ${number + 1}${temperature}`), list);
    });
    at("heads").replaceChildren(...groups);
  };

  const drawTemperature = () => {
    const layer = model.layers[state.layer];
    const now = meanOf(layer.temperature) * layer.factor;
    const slider = at("temperature");
    slider.value = Math.log2(layer.factor);
    const words = layer.factor === 1 ? (layer.learned ? "learned" : "plain attention") : `${layer.factor.toFixed(2)} × ${layer.learned ? "learned" : "plain"}`;
    at("value").textContent = `${now.toPrecision(3)} (${words})`;
    slider.setAttribute("aria-valuetext", `temperature ${now.toPrecision(3)}, ${words}`);
    at("layer").value = String(state.layer);
    const heads = layer.heads === 1 ? [] : [make("option", { value: -1 }, "mean of all heads")];
    for (let head = 0; head < layer.heads; head += 1) heads.push(make("option", { value: head }, `head ${head + 1}`));
    at("head").replaceChildren(...heads);
    at("head").value = String(state.head);
  };

  const gated = model.layers.map((layer, number) => number).filter((number) => model.layers[number].gate);
  const drawGates = () => { if (gated.length) drawGate(at, model, nodes, state); };

  const drawAll = () => { drawTemperature(); drawNode(); drawHeads(); drawGates(); drawScore(); };
  const open = (node) => { state.node = node; at("found").replaceChildren(); at("said").textContent = ""; drawAll(); };
  // Goes to the next or the previous node that is classified wrongly.
  const step = (direction) => {
    const inTest = nodes.tested.length > 0 && at("among").value === "test";
    const [list, what] = inTest ? [nodes.wrongTested, "wrong test node"] : [nodes.wrong, "wrong node"];
    if (!list.length) { at("said").textContent = `No ${what} in this page.`; return; }
    const next = direction > 0 ? list.find((node) => node > state.node) : list.findLast((node) => node < state.node);
    open(next ?? (direction > 0 ? list[0] : list[list.length - 1]));
    at("said").textContent = `${what} ${list.indexOf(state.node) + 1} of ${list.length}`;
  };
  const listFound = () => {
    const { found, similar = [], said } = nodes.search(at("find").value);
    const buttons = [...found, ...similar].slice(0, 12).map((node) => {
      const { label, right, words } = nodes.seen(node, 0);
      return make("button", { type: "button", "data-node": node, title: words }, keyOf(label),
        ` ${nodes.nameOf(node)}${right === false ? " ✕" : ""}`);
    });
    at("found").replaceChildren(...buttons);
    at("said").textContent = said;
  };

  section.addEventListener("click", (event) => {
    const link = event.target.closest("[data-node]");
    const button = event.target.closest("button");
    const cell = event.target.closest("[data-dimension]");
    if (link) open(Number(link.dataset.node));
    else if (cell) { state.dimension = Number(cell.dataset.dimension); drawGates(); }
    else if (button && button.dataset.head) {
      state.layer = Number(button.dataset.layer);
      state.head = Number(button.dataset.head);
      drawAll();
      section.querySelector(`[data-layer="${state.layer}"][data-head="${state.head}"]`).focus();
    } else if (button && button.dataset.go === "next") step(1);
    else if (button && button.dataset.go === "back") step(-1);
    else if (button && button.dataset.go === "random") open(nodes.open[Math.floor(Math.random() * nodes.open.length)]);
    else if (button && button.dataset.go === "reset") {
      model.layers.forEach((_, number) => model.setFactor(number, 1));
      drawAll();
    }
  });
  at("find").addEventListener("input", listFound);
  at("find").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const { found } = nodes.search(at("find").value);
    if (found.length) open(found[0]); else listFound();
  });
  at("temperature").addEventListener("input", (event) => {
    model.setFactor(state.layer, 2 ** Number(event.target.value));
    drawTemperature();
    drawNode();
    drawHeads();
    // The gate of the first layer comes before all temperatures.
    if (state.gateLayer > 0) drawGates();
    drawScore();
  });
  at("layer").addEventListener("change", (event) => { chooseLayer(Number(event.target.value)); drawAll(); });
  at("head").addEventListener("change", (event) => { state.head = Number(event.target.value); drawAll(); });
  window.addEventListener("resize", () => drawNode());
  if (gated.length) {
    [state.gateLayer] = gated;
    at("gate-layer").addEventListener("change", (event) => { state.gateLayer = Number(event.target.value); state.dimension = 0; drawGates(); });
    at("dimension").addEventListener("input", (event) => {
      const wanted = Math.round(Number(event.target.value));
      if (wanted >= 0 && wanted < model.layers[state.gateLayer].gateWidth) { state.dimension = wanted; drawGates(); }
    });
  }
  at("among").parentElement.hidden = !nodes.tested.length;
  chooseLayer(model.layers.length - 1);
  open(nodes.first((node) => model.sources(node).length));
};
for (const section of document.querySelectorAll("section.explorer")) start(section);
