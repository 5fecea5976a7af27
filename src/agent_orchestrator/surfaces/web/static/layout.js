// Where the boxes of a graph stand: columns by longest path, order by the mean of the neighbours, places by pooling
// adjacent violators, so that no two overlap and each is as near to its neighbours as the others let it be.
export const WIDTH = 176;
export const HEIGHT = 34;
const GAP_X = 72, GAP_Y = 14;

const LOOSE_MAX = 8;

/** Return {x, y, width, height} for nodes that need others: needs[i] are indexes. Many that have nothing to do with others stand in a grid below. */
export function layOut(needs) {
  const needed = new Set(needs.flat()), loose = [], linked = [];
  needs.forEach((list, node) => (list.length || needed.has(node) ? linked : loose).push(node));
  if (loose.length <= LOOSE_MAX) return layOutLinked(needs);
  const numbers = new Map(linked.map((node, i) => [node, i])), inner = layOutLinked(linked.map((node) => needs[node].map((need) => numbers.get(need)).filter((one) => one !== undefined)));
  const x = new Float64Array(needs.length), y = new Float64Array(needs.length), stepX = WIDTH + GAP_Y, stepY = HEIGHT + GAP_Y;
  linked.forEach((node, i) => { x[node] = inner.x[i]; y[node] = inner.y[i]; });
  const columns = Math.ceil(Math.sqrt((loose.length * stepY * 1.8) / stepX)), top = linked.length ? inner.height + 2 * GAP_Y : 0;
  loose.forEach((node, i) => { x[node] = (i % columns) * stepX; y[node] = top + Math.floor(i / columns) * stepY; });
  return { x, y, width: Math.max(inner.width, columns * stepX - GAP_Y), height: top + Math.ceil(loose.length / columns) * stepY - GAP_Y };
}

function layOutLinked(needs) {
  const size = needs.length, rank = new Int32Array(size), waits = new Int32Array(size), after = Array.from({ length: size }, () => []);
  needs.forEach((list, node) => { for (const need of list) if (need !== node && need < size) { after[need].push(node); waits[node] += 1; } });
  const queue = [];
  for (let node = 0; node < size; node++) if (!waits[node]) queue.push(node);
  for (let at = 0; at < queue.length; at++) {
    for (const next of after[queue[at]]) {
      rank[next] = Math.max(rank[next], rank[queue[at]] + 1);
      if (--waits[next] === 0) queue.push(next);
    }
  }
  const layers = [];
  for (let node = 0; node < size; node++) (layers[rank[node]] ||= []).push(node);
  for (let i = 0; i < layers.length; i++) layers[i] ||= [];
  const y = new Float64Array(size), step = HEIGHT + GAP_Y;
  for (const layer of layers) layer.forEach((node, i) => { y[node] = (i - (layer.length - 1) / 2) * step; });
  const mean = (list, fallback) => { if (!list.length) return fallback; let sum = 0; for (const one of list) sum += y[one]; return sum / list.length; };
  const sweeps = size > 600 ? 3 : 6;
  for (let sweep = 0; sweep < sweeps; sweep++) {
    for (const layer of layers) place(layer, (node) => mean(needs[node], y[node]), y, step);
    for (const layer of [...layers].reverse()) place(layer, (node) => mean(after[node], y[node]), y, step);
  }
  for (const layer of layers) place(layer, (node) => mean(needs[node], y[node]), y, step);
  let top = Infinity, bottom = -Infinity;
  for (let node = 0; node < size; node++) { top = Math.min(top, y[node]); bottom = Math.max(bottom, y[node]); }
  if (!size) top = bottom = 0;
  const x = Float64Array.from(rank, (r) => r * (WIDTH + GAP_X));
  for (let node = 0; node < size; node++) y[node] -= top;
  return { x, y, width: Math.max(0, layers.length * (WIDTH + GAP_X) - GAP_X), height: bottom - top + HEIGHT };
}

/** Order a layer by what each node wishes for, and give it the nearest places that keep the distance. */
function place(layer, wish, y, step) {
  const wishes = new Map(layer.map((node) => [node, wish(node)]));
  layer.sort((a, b) => wishes.get(a) - wishes.get(b) || a - b);
  const blocks = []; // Each: the sum of its wishes, how many.
  layer.forEach((node, i) => {
    let block = [wishes.get(node) - i * step, 1];
    while (blocks.length && blocks[blocks.length - 1][0] / blocks[blocks.length - 1][1] >= block[0] / block[1]) {
      const last = blocks.pop();
      block = [last[0] + block[0], last[1] + block[1]];
    }
    blocks.push(block);
  });
  let i = 0;
  for (const [sum, many] of blocks) for (let k = 0; k < many; k++, i++) y[layer[i]] = sum / many + i * step;
}
