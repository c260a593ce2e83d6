"use strict";
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (isDark) => root.setAttribute("data-theme", isDark ? "dark" : "light");
  setTheme(dark.matches);
  dark.addEventListener("change", (event) => setTheme(event.matches));
  document.getElementById("theme").addEventListener("click", () => {
    setTheme(root.getAttribute("data-theme") !== "dark");
  });

  // Tables: a click on a heading sorts by it, a second click the other way round.
  const byKey = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  };
  const sortTable = (heading, column) => {
    const descending = heading.getAttribute("aria-sort") === "none"
      ? heading.cellIndex > 0
      : heading.getAttribute("aria-sort") === "ascending";
    for (const other of heading.parentElement.cells) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = heading.closest("table").tBodies[0];
    const key = (row) => row.cells[column].dataset.key;
    const rows = [...body.rows].sort((a, b) => {
      // Empty cells stay at the end in both directions.
      if (!key(a) || !key(b)) return (key(a) ? 0 : 1) - (key(b) ? 0 : 1);
      return (descending ? -1 : 1) * byKey(key(a), key(b));
    });
    body.append(...rows);
  };

  const chooseView = (button) => {
    const group = button.parentElement;
    for (const other of group.querySelectorAll("button")) {
      other.setAttribute("aria-pressed", String(other === button));
    }
    const table = group.parentElement.querySelector("table.scores");
    table.setAttribute("data-view", button.dataset.view);
  };

  const copyText = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages opened from a file may not have the clipboard of the browser.
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  const copy = async (button) => {
    const place = button.parentElement;
    const texts = JSON.parse(place.querySelector("script").textContent);
    await copyText(texts[button.dataset.copy]);
    place.querySelector(".said").textContent = `copied as ${button.dataset.copy}`;
  };

  // A figure on its own has no style sheet, so each element gets what it looks like.
  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray",
    "stroke-linecap", "font-family", "font-size", "font-weight", "text-anchor"];
  const aloneSvg = (svg) => {
    const alone = svg.cloneNode(true);
    const [shown, copied] = [svg, alone].map((top) => [top, ...top.querySelectorAll("*")]);
    shown.forEach((element, number) => {
      const look = getComputedStyle(element);
      const written = STYLES.map((name) => `${name}:${look.getPropertyValue(name)}`);
      copied[number].setAttribute("style", written.join(";"));
    });
    const paper = getComputedStyle(document.body).backgroundColor;
    const ground = document.createElementNS(svg.namespaceURI, "rect");
    ground.setAttribute("width", "100%");
    ground.setAttribute("height", "100%");
    ground.setAttribute("fill", paper);
    alone.prepend(ground);
    return new XMLSerializer().serializeToString(alone);
  };
  const download = (name, url) => {
    const link = document.createElement("a");
    link.download = name;
    link.href = url;
    link.click();
  };
  const savePng = (name, picture, width, height) => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((png) => download(`${name}.png`, URL.createObjectURL(png)));
  };
  const save = (button) => {
    const figure = button.closest("figure");
    const svg = [...figure.querySelectorAll("svg")].find((one) => one.getClientRects().length);
    const graph = button.closest("section").getAttribute("aria-label");
    const name = `${graph} ${figure.dataset.name}`.replace(/[^\w-]+/g, "_");
    const source = aloneSvg(svg);
    const url = URL.createObjectURL(new Blob([source], { type: "image/svg+xml" }));
    if (button.dataset.save === "svg") {
      download(`${name}.svg`, url);
      return;
    }
    const picture = new Image();
    const { width, height } = svg.viewBox.baseVal;
    picture.onload = () => savePng(name, picture, width, height);
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.sort) sortTable(button.closest("th"), Number(button.dataset.sort));
    else if (button.dataset.view) chooseView(button);
    else if (button.dataset.copy) copy(button);
    else if (button.dataset.save) save(button);
  });
  document.addEventListener("change", (event) => {
    const choice = event.target.closest(".choice");
    if (!choice) return;
    for (const panel of choice.querySelectorAll("[data-option]")) {
      panel.hidden = panel.dataset.option !== event.target.value;
    }
  });
})();
