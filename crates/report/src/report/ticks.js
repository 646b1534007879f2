// Ticks for what is drawn while somebody zooms: traces, places, distributions.
// The rules are those of draw/scale.rs, which decides all other charts; a test
// holds both to the same answers.

// Log ticks of 1, 2, 5 around [low, high].
function logTicks(low, high) {
  const ticks = [], first = Math.floor(Math.log10(low));
  for (let d = first; d < first + 25; d++) {
    for (const m of [1, 2, 5]) {
      const tick = m * 10 ** d;
      if (tick <= low * 1.000001) ticks.length = 0;
      ticks.push(tick);
      if (tick >= high * 0.999999 && ticks.length > 1) return ticks;
    }
  }
  return ticks;
}
// Powers of ten where there are many, and of these every n-th.
function thin(ticks, most) {
  if (ticks.length <= most) return ticks;
  const decades = ticks.filter(t => Math.abs(Math.log10(t) - Math.round(Math.log10(t))) < 1e-6);
  const every = Math.max(1, Math.ceil(decades.length / most));
  return decades.filter((_, i) => i % every === 0);
}
// Round values within [low, high].
function linearTicks(low, high, most) {
  if (!(high > low)) return [low];
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw * 0.999999) || raw;
  const ticks = [];
  for (let n = Math.ceil(low / step - 1e-9); n <= Math.floor(high / step + 1e-9); n++) ticks.push(n * step);
  return ticks;
}
const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
const unitFor = ns => UNITS.find(([, scale]) => ns >= scale * 0.9995) || UNITS[3];
// Short, for axes: 1 µs, 20 ms.
function tick(ns) {
  const [unit, scale] = unitFor(ns);
  return `${Math.round(ns / scale * 1e3) / 1e3} ${unit}`;
}
