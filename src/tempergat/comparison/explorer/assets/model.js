// The model of the page: unpacks what is stored and computes coefficients, gates and
// class scores at any temperature, as the layers of tempergat do.
const unpack = (() => {
  const kinds = {
    uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array,
    float32: Float32Array, levels: Uint16Array, float16: Uint16Array,
  };
  const half = (bits) => {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 0x1f;
    const fraction = bits & 0x3ff;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  };
  return (packed) => {
    if (!packed) return null;
    const bytes = Uint8Array.from(atob(packed.text), (letter) => letter.charCodeAt(0));
    const array = new kinds[packed.kind](bytes.buffer);
    if (packed.kind === "float16") return Float64Array.from(array, half);
    if (packed.kind === "levels") {
      return Float64Array.from(array, (level) => packed.low + level * packed.step);
    }
    return array;
  };
})();

const softmax = (logits) => {
  const largest = logits.reduce((most, value) => Math.max(most, value), -Infinity);
  const powers = logits.map((value) => Math.exp(value - largest));
  const total = powers.reduce((sum, value) => sum + value, 0);
  return powers.map((value) => value / total);
};
const meanOf = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const sigmoid = (value) => 1 / (1 + Math.exp(-value));
const ACTIVATIONS = {
  elu: (value) => (value > 0 ? value : Math.expm1(value)),
  relu: (value) => Math.max(value, 0),
};
// weight is [rows, columns], one row after another.
const linear = (weight, bias, x) => {
  const columns = x.length;
  const out = new Float64Array(weight.length / columns);
  for (let row = 0; row < out.length; row += 1) {
    let sum = bias ? bias[row] : 0;
    for (let k = 0; k < columns; k += 1) sum += weight[row * columns + k] * x[k];
    out[row] = sum;
  }
  return out;
};

class Model {
  constructor(page) {
    this.classes = page.classes;
    this.exact = page.exact;
    this.pointer = unpack(page.pointer);
    this.source = unpack(page.source);
    this.layers = page.layers.map((layer) => ({
      ...layer,
      width: layer.heads * layer.channels,
      gateWidth: layer.gate === "head" ? layer.heads : layer.heads * layer.channels,
      logits: unpack(layer.logits),
      features: unpack(layer.features),
      gates: unpack(layer.gates),
      residual: unpack(layer.residual),
      bias: unpack(layer.bias),
      weights: layer.weights && Object.fromEntries(
        Object.entries(layer.weights).map(([name, value]) => [name, unpack(value)]),
      ),
      after: layer.after && {
        act: ACTIVATIONS[layer.after.act], scale: unpack(layer.after.scale),
        shift: unpack(layer.after.shift),
      },
      factor: 1,
      states: new Map(),
      outputs: new Map(),
    }));
  }

  // A copy that shares what is stored, at the learned temperatures.
  learned() {
    const other = Object.create(Model.prototype);
    Object.assign(other, this);
    other.layers = this.layers.map((layer) => ({
      ...layer, factor: 1, states: new Map(), outputs: new Map(),
    }));
    return other;
  }

  setFactor(number, factor) {
    this.layers[number].factor = factor;
    this.layers.forEach((layer, place) => {
      if (place >= number) layer.outputs.clear();
      if (place > number) layer.states.clear();
    });
  }

  sources(node) {
    return this.source.subarray(this.pointer[node], this.pointer[node + 1]);
  }

  // What a layer computes of a node before it looks at the neighbours.
  state(number, node) {
    const layer = this.layers[number];
    if (!layer.states.has(node)) layer.states.set(node, this.makeState(layer, number, node));
    return layer.states.get(node);
  }

  makeState(layer, number, node) {
    if (number === 0 || !this.exact) {
      const row = (array, width) => array && array.subarray(node * width, (node + 1) * width);
      const total = layer.concat ? layer.width : layer.channels;
      return {
        message: row(layer.features, layer.width), gate: row(layer.gates, layer.gateWidth),
        residual: row(layer.residual, total),
      };
    }
    const x = this.output(number - 1, node);
    const { weights } = layer;
    const gate = layer.gate ? linear(weights.gate, weights.gate_bias, x).map(sigmoid) : null;
    const gated = (z) => (layer.gate === "first" ? z.map((value, k) => value * gate[k]) : z);
    const message = gated(linear(weights.source, weights.source_bias, x));
    const target = weights.target ? gated(linear(weights.target, weights.target_bias, x)) : null;
    const key = weights.key ? gated(linear(weights.key, weights.key_bias, x)) : null;
    const residual = weights.residual ? linear(weights.residual, weights.residual_bias, x) : null;
    return { message, key, target, gate, residual };
  }

  // The logits of one head over a node's neighbours, without the temperature.
  headLogits(number, node, head) {
    const layer = this.layers[number];
    const first = this.pointer[node];
    const sources = this.sources(node);
    if (layer.logits) {
      return Array.from(sources, (_, slot) => layer.logits[(first + slot) * layer.heads + head]);
    }
    const { weights, channels, slope } = layer;
    const start = head * channels;
    const leaky = (value) => (value > 0 ? value : slope * value);
    const own = this.state(number, node);
    return Array.from(sources, (other) => {
      const { message, key } = this.state(number, other);
      let sum = 0;
      for (let k = start; k < start + channels; k += 1) {
        if (layer.attention === "gat") {
          sum += weights.att_source[k] * message[k] + weights.att_target[k] * own.message[k];
        } else if (layer.attention === "dot_product") {
          sum += own.target[k] * key[k] / Math.sqrt(channels);
        } else {
          sum += weights.att[k] * leaky(message[k] + own.target[k]);
        }
      }
      return layer.attention === "gat" ? leaky(sum) : sum;
    });
  }

  // The coefficients of one head, in the order of `sources`.
  coefficients(number, node, head) {
    const layer = this.layers[number];
    const temperature = layer.temperature[head] * layer.factor;
    return softmax(this.headLogits(number, node, head).map((value) => value / temperature));
  }

  // The coefficients of one head, or for head < 0 their mean over all heads.
  attention(number, node, head) {
    if (head >= 0) return this.coefficients(number, node, head);
    const { heads } = this.layers[number];
    const mean = new Array(this.sources(node).length).fill(0);
    for (let one = 0; one < heads; one += 1) {
      this.coefficients(number, node, one).forEach((value, slot) => { mean[slot] += value / heads; });
    }
    return mean;
  }

  // What a layer passes on for a node.
  output(number, node) {
    const layer = this.layers[number];
    if (!layer.outputs.has(node)) layer.outputs.set(node, this.makeOutput(layer, number, node));
    return layer.outputs.get(node);
  }

  makeOutput(layer, number, node) {
    const { heads, channels, width } = layer;
    const sums = new Float64Array(width);
    const sources = this.sources(node);
    for (let head = 0; head < heads; head += 1) {
      const weights = this.coefficients(number, node, head);
      sources.forEach((other, slot) => {
        const { message } = this.state(number, other);
        for (let k = head * channels; k < (head + 1) * channels; k += 1) {
          sums[k] += weights[slot] * message[k];
        }
      });
    }
    const own = this.state(number, node);
    if (layer.gate && layer.gate !== "first") {
      const each = width / layer.gateWidth;
      sums.forEach((_, k) => { sums[k] *= own.gate[Math.floor(k / each)]; });
    }
    let out = sums;
    if (!layer.concat) {
      out = new Float64Array(channels);
      sums.forEach((value, k) => { out[k % channels] += value / heads; });
    }
    const { after, bias } = layer;
    return out.map((value, k) => {
      let x = value + (own.residual ? own.residual[k] : 0) + (bias ? bias[k] : 0);
      if (after.scale) x = x * after.scale[k] + after.shift[k];
      return after.act ? after.act(x) : x;
    });
  }

  // The mean gate of each class in each dimension, or head; null for a class without nodes.
  gateMeans(number, nodes, classOf) {
    const sums = this.classes.map(() => new Float64Array(this.layers[number].gateWidth));
    const counts = this.classes.map(() => 0);
    for (const node of nodes) {
      const place = classOf(node);
      counts[place] += 1;
      this.state(number, node).gate.forEach((value, k) => { sums[place][k] += value; });
    }
    return sums.map((row, place) => Array.from(row, (sum) => (counts[place] ? sum / counts[place] : null)));
  }

  probabilities(node) {
    return softmax(Array.from(this.output(this.layers.length - 1, node)));
  }
}
