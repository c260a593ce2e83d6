// The nodes of the page: their names, classes and predictions, and the search for them.
class Nodes {
  constructor(page) {
    for (const name of ["numbers", "labels", "predicted", "parts", "shown"]) {
      this[name] = unpack(page[name]);
    }
    this.page = page;
    this.every = Array.from(this.numbers.keys());
    // Those that can be looked at.
    this.open = this.every.filter((node) => this.shown[node]);
    this.labelled = this.open.filter((node) => this.labels[node] >= 0);
    this.tested = this.labelled.filter((node) => this.parts[node] === 3);
    this.wrong = this.labelled.filter((node) => this.labels[node] !== this.predicted[node]);
    this.wrongTested = this.wrong.filter((node) => this.parts[node] === 3);
  }

  nameOf(node) { return this.page.names ? this.page.names[node] : String(this.numbers[node]); }

  classOf(place) {
    const name = this.page.classes[place];
    return name === String(place) ? `class ${name}` : name;
  }

  // A node as drawings and tables show it; its label is -1 if its class is not known.
  seen(node, weight, guess = this.predicted[node]) {
    const label = this.labels[node];
    const right = label < 0 ? null : label === guess;
    const words = label < 0
      ? `class not known; predicted ${this.classOf(guess)}`
      : `${this.classOf(label)}, predicted ${right ? "right" : this.classOf(guess)}`;
    return {
      number: node, name: this.nameOf(node), weight, canOpen: Boolean(this.shown[node]), label, right, words,
    };
  }

  partOf(node) { return ["", "a training node", "a validation node", "a test node"][this.parts[node]]; }

  // The node to begin with, of those that the first sentence of the page is about.
  first(degreeOf) {
    const list = [this.wrongTested, this.tested, this.wrong, this.open].find((some) => some.length);
    return list.find((node) => degreeOf(node) >= 5 && degreeOf(node) <= 14) ?? list[0];
  }

  // The class of a word, or -1. A bare number is a node's; classes without a name are
  // found as "class 2".
  classNamed(words) {
    return this.page.classes.findIndex((_, number) => {
      const word = this.classOf(number).toLowerCase();
      return word === words || `class ${word}` === words;
    });
  }

  // The nodes of an id or a class; or, if there is no such, those whose id begins so.
  search(words) {
    const wanted = words.trim().toLowerCase();
    if (!wanted) return { found: [], said: "" };
    const named = this.open.filter((node) => this.nameOf(node).toLowerCase() === wanted);
    if (named.length) return { found: named, said: this.counted(named) };
    const place = this.classNamed(wanted);
    if (place >= 0) {
      const found = this.open.filter((node) => this.labels[node] === place);
      return { found, said: this.counted(found) + this.guessed(place) };
    }
    const guess = wanted.startsWith("predicted ") ? this.classNamed(wanted.slice(10).trim()) : -1;
    if (guess >= 0) {
      const found = this.open.filter((node) => this.predicted[node] === guess);
      return { found, said: this.counted(found) };
    }
    const similar = this.open.filter((node) => this.nameOf(node).toLowerCase().startsWith(wanted));
    return { found: [], similar, said: this.absent(words.trim(), similar) };
  }

  counted(found) {
    const listed = found.length > 12 ? ", the first 12 listed" : "";
    return `${found.length} ${found.length === 1 ? "node" : "nodes"} found${listed}`;
  }

  // What a search for a class leaves out: nodes that are only predicted to be of it.
  guessed(place) {
    const count = this.open.filter((node) => this.labels[node] < 0 && this.predicted[node] === place).length;
    if (!count) return "";
    const name = this.classOf(place);
    return `; ${count} ${count === 1 ? "node" : "nodes"} of unknown class predicted ${name} (search for "predicted ${name}")`;
  }

  absent(words, similar) {
    const part = this.page.whole ? "" : "; the page holds only some of the nodes";
    const listed = similar.length > 12 ? ", the first 12 listed" : "";
    const count = `${similar.length} ${similar.length === 1 ? "node" : "nodes"}`;
    const also = similar.length ? ` The ids of ${count} begin with it${listed}.` : "";
    return `There is no node or class ${words} here${part}.${also}`;
  }
}
