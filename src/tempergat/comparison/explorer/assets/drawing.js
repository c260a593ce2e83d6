// Elements and drawings of the page.
const make = (tag, attributes = {}, ...content) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
};
const SVG = "http://www.w3.org/2000/svg";
const svgElement = (tag, attributes = {}, ...content) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
};
const svgText = (x, y, words, attributes = {}) => svgElement("text", { x, y, ...attributes }, words);
const figureOf = (width, height, name) => svgElement("svg", {
  viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": name,
});
const titleOf = (words) => svgElement("title", {}, words);
const short = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);
// Ids that begin alike usually end differently.
const shortId = (words, most) => (words.length > most
  ? `${words.slice(0, Math.floor(most / 2))}…${words.slice(-Math.floor((most - 1) / 2))}` : words);
const weightText = (value) => value.toFixed(value >= 0.095 ? 2 : 3);

const MOST_DRAWN = 24;
const WIDEST = 18;
// The style of a class; -1 stands for a class that is not known.
const lookOf = (label) => (label < 0 ? "unknown" : `k${label % 8}`);
const signOf = (label) => (label < 0 ? "?" : String(label));
const keyOf = (label) => make("span", { class: `key ${lookOf(label)}` }, signOf(label));

// A node's circle: its colour and number are its true class, dashed with ? where that is
// not known; a cross means classified wrongly.
const circleOf = (node, x, y, radius, words) => {
  const group = svgElement("g", { class: lookOf(node.label) });
  const circle = svgElement("circle", { cx: x, cy: y, r: radius, class: "node" });
  circle.append(titleOf(words));
  group.append(circle);
  if (radius >= 10) {
    group.append(svgText(x, y + 4.5, signOf(node.label), { class: "inside middle" }));
  }
  if (node.right === false) {
    const [a, b, arm] = [x + radius * 0.8, y - radius * 0.8, radius >= 10 ? 4.5 : 2.5];
    for (const kind of ["halo", "cross"]) {
      for (const dx of [arm, -arm]) {
        group.append(svgElement("line", {
          x1: a - dx, y1: b - arm, x2: a + dx, y2: b + arm, class: kind,
        }));
      }
    }
  }
  return group;
};

// A node in the middle, its neighbours around it, attention weights as the width of edges.
// The self-loop is the ring around the node.
const starOf = (view, size, name) => {
  const { node, neighbours, own } = view;
  const large = size > 300;
  const reach = large ? size / 2 - 46 : size / 2 - 12;
  const drawn = neighbours.slice(0, MOST_DRAWN);
  const labels = drawn.map((other) => `${shortId(other.name, size > 400 ? 14 : 9)} · ${weightText(other.weight)}`);
  const longest = labels.reduce((most, label) => Math.max(most, label.length), 11);
  const width = large ? Math.max(size, 2 * (reach + 26 + 7 * longest)) : size;
  const [middle, top] = [width / 2, size / 2];
  const radius = large ? 12 : 5;
  const centre = large ? 20 : 8;
  const widest = large ? WIDEST : 9;
  const svg = figureOf(width, size, name);
  const ring = own === null ? 0 : Math.max(0.5, widest * own);
  const inner = (centre + 3 + ring / 2) / reach;
  const places = drawn.map((_, number) => {
    const angle = (2 * Math.PI * number) / drawn.length - Math.PI / 2;
    return [Math.cos(angle), Math.sin(angle)];
  });
  drawn.forEach((other, number) => {
    const [dx, dy] = places[number].map((value) => value * reach);
    svg.append(svgElement("line", {
      x1: middle + dx, y1: top + dy, x2: middle + inner * dx, y2: top + inner * dy,
      class: "edge", "stroke-width": Math.max(0.5, widest * other.weight).toFixed(2),
    }));
  });
  if (own !== null) {
    svg.append(svgElement("circle", {
      cx: middle, cy: top, r: centre + 3 + ring / 2, class: "own", "stroke-width": ring.toFixed(2),
    }));
  }
  drawn.forEach((other, number) => {
    const [ux, uy] = places[number];
    const [x, y] = [middle + ux * reach, top + uy * reach];
    const words = `node ${other.name}: ${other.words}, attention weight ${other.weight.toFixed(3)}`;
    const circle = circleOf(other, x, y, radius, words);
    if (large && other.canOpen) {
      circle.dataset.node = other.number;
      circle.classList.add("link");
    }
    svg.append(circle);
    if (large) {
      const anchor = Math.abs(ux) < 0.25 ? "middle" : ux > 0 ? "start" : "end";
      svg.append(svgText(x + ux * (radius + 10), y + uy * (radius + 12) + 4.5,
        labels[number], { class: anchor }));
    }
  });
  svg.append(circleOf(node, middle, top, centre, `node ${node.name}: ${node.words}`));
  if (large && own !== null) {
    // Edges may run behind it.
    for (const kind of ["halo", "itself"]) {
      svg.append(svgText(middle, top + centre + ring + 18, `itself · ${weightText(own)}`, { class: `${kind} middle` }));
    }
  }
  return svg;
};

// Classes as rows and dimensions as columns; the stronger the colour, the more open.
const heatOf = ([low, high], means, dimensions, chosen, classes) => {
  const [left, top, cell] = [118, 6, Math.max(7, Math.min(18, 720 / dimensions.length))];
  const tall = 20;
  const width = left + dimensions.length * cell + 8;
  const height = top + classes.length * tall + 26;
  const svg = figureOf(width, height, "Mean gate by class and dimension");
  // A map of many dimensions scrolls on a phone, one of few does not grow.
  svg.style.minWidth = `${Math.min(width, 576)}px`;
  svg.style.maxWidth = `${1.4 * width}px`;
  classes.forEach((name, row) => {
    svg.append(svgText(left - 8, top + row * tall + 14, short(name, 15), { class: "end tick" }));
    dimensions.forEach((dimension, column) => {
      const value = means[row][dimension];
      if (value === null) return;
      const rect = svgElement("rect", {
        x: left + column * cell, y: top + row * tall, width: cell - 1, height: tall - 1,
        class: "heat", "fill-opacity": (0.06 + (0.94 * (value - low)) / (high - low || 1)).toFixed(3),
      });
      rect.dataset.dimension = dimension;
      rect.append(titleOf(`${name}, dimension ${dimension}: ${value.toFixed(3)}`));
      svg.append(rect);
    });
  });
  const place = dimensions.indexOf(chosen);
  if (place >= 0) {
    svg.append(svgElement("rect", {
      x: left + place * cell - 1, y: top - 2, width: cell + 1,
      height: classes.length * tall + 3, class: "chosen",
    }));
    svg.append(svgText(left + (place + 0.5) * cell, height - 8, String(chosen), { class: "tick middle" }));
  }
  return svg;
};

// A histogram of values from 0 to 1 with a mark at one of them.
const histogramOf = (values, marked, name) => {
  const [width, height, left, bottom, bins] = [420, 150, 12, 112, 20];
  const counts = new Array(bins).fill(0);
  for (const value of values) counts[Math.min(bins - 1, Math.floor(value * bins))] += 1;
  const most = Math.max(...counts, 1);
  const step = (width - 2 * left) / bins;
  const svg = figureOf(width, height, name);
  counts.forEach((count, bin) => {
    const tall = (count / most) * 88;
    const bar = svgElement("rect", {
      x: left + bin * step + 0.5, y: bottom - tall, width: step - 1, height: tall, class: "bar c1",
    });
    bar.append(titleOf(`${count} nodes from ${(bin / bins).toFixed(2)} to ${((bin + 1) / bins).toFixed(2)}`));
    svg.append(bar);
  });
  svg.append(svgElement("line", { x1: left, y1: bottom, x2: width - left, y2: bottom, class: "axis" }));
  for (const tick of [0, 0.5, 1]) {
    const x = left + tick * (width - 2 * left);
    svg.append(svgText(x, bottom + 16, String(tick), { class: "tick middle" }));
  }
  svg.append(svgText(left, height - 4, "closed", { class: "tick" }));
  svg.append(svgText(width - left, height - 4, "open", { class: "tick end" }));
  if (marked !== null) {
    const x = left + marked * (width - 2 * left);
    svg.append(svgElement("line", { x1: x, y1: 16, x2: x, y2: bottom, class: "marked" }));
    const anchor = marked > 0.7 ? "end" : "start";
    const shift = marked > 0.7 ? -6 : 6;
    svg.append(svgText(x + shift, 14, `this node ${marked.toFixed(2)}`, { class: `${anchor} tick strong` }));
  }
  return svg;
};
