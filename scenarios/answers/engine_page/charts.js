// Results of a run in numbers, and charts of them as SVG.
globalThis.charts = (() => {
  "use strict";

  // A unit is about a pixel, on a phone too, so text keeps its size.
  const isPhone = globalThis.matchMedia !== undefined && matchMedia("(max-width: 30rem)").matches;
  const WIDTH = isPhone ? 310 : 480, HEIGHT = 240, LEFT = 52, BOTTOM = 34, TOP = 8, RIGHT = 14;

  function scale(low, high, start, stop, isLog) {
    const f = isLog ? Math.log10 : (x) => x;
    const span = f(high) - f(low) || 1;
    return (value) => start + (f(value) - f(low)) / span * (stop - start);
  }

  // At least this many ticks of a logarithmic axis, or it has those of a linear one.
  const LOG_TICKS_MIN = 4;

  function ticks(low, high, isLog) {
    if (isLog) {
      const found = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
        for (const digit of [1, 2, 5]) if (digit * 10 ** power >= low && digit * 10 ** power <= high) found.push(digit * 10 ** power);
      if (found.length < LOG_TICKS_MIN) return ticks(low, high, false);
      return found.length > 6 ? found.filter((one) => String(one).replace(/[0.]/g, "")[0] === "1") : found;
    }
    const raw = (high - low) / 5, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= raw);
    const found = [];
    for (let one = Math.ceil(low / step) * step; one <= high * 1.0001; one += step) found.push(Number(one.toPrecision(6)));
    return found;
  }

  function short(number) {
    if (number >= 1e6) return `${number / 1e6} M`;
    if (number >= 1e4) return `${number / 1e3} k`;
    return String(number);
  }

  // A screen reader reads the label of a picture and none of the letters in it, so the label states the values.
  const picture = (height, title, values) => `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${[title, ...values].join("; ")}">`;

  const three = (number) => number >= 999.5 ? String(Math.round(number)) : String(Number(number.toPrecision(3)));

  function plot(title, xs, ys, draw, xLog = false, yLog = false, values = []) {
    const x = scale(...xs, LEFT, WIDTH - RIGHT, xLog), y = scale(...ys, HEIGHT - BOTTOM, TOP, yLog);
    let svg = picture(HEIGHT, title, values);
    for (const one of ticks(...ys, yLog))
      svg += `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(one)}" y2="${y(one)}"/><text x="${LEFT - 6}" y="${y(one) + 4}" text-anchor="end">${short(one)}</text>`;
    for (const one of ticks(...xs, xLog))
      svg += `<line class="grid" x1="${x(one)}" x2="${x(one)}" y1="${HEIGHT - BOTTOM}" y2="${HEIGHT - BOTTOM + 4}"/><text x="${x(one)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${short(one)}</text>`;
    return `${svg}${draw(x, y)}</svg>`;
  }

  const path = (points) => `<path class="main" d="M${points.map((pair) => pair.map((one) => one.toFixed(1)).join(" ")).join("L")}"/>`;

  // Many dots as one path of lines without length, which browsers draw fast.
  const dots = (points) => `<path class="dots" d="${points.map((pair) => `M${pair.map((one) => one.toFixed(1)).join(" ")}h0`).join("")}"/>`;

  // The latencies of all requests in order, their mean and percentiles, and requests per second.
  function summary(result) {
    const latencies = Array.from(result.completed_ns, (completed, row) => completed - result.issued_ns[row]).sort((a, b) => a - b);
    const mean_ns = latencies.reduce((sum, one) => sum + one, 0) / latencies.length;
    const at = (share) => latencies[Math.max(0, Math.ceil(share * latencies.length) - 1)];
    const start_ns = result.issued_ns.reduce((least, one) => Math.min(least, one), Infinity);
    const stop_ns = result.completed_ns.reduce((most, one) => Math.max(most, one), 0);
    return { latencies, mean_ns, at, rate: latencies.length / (stop_ns - start_ns) * 1e9, stop_ns };
  }

  // What an open loop offers and the cluster serves [requests/s] until the last arrival, if the cluster falls behind, as
  // `offered_load` in `sim/observe/window.py`; otherwise null.
  function saturation(result, saturatedBelow) {
    const issued = result.issued_ns.length;
    const last_ns = result.issued_ns.reduce((most, one) => Math.max(most, one), 0);
    const served = result.completed_ns.filter((completed) => completed <= last_ns).length;
    if (served >= saturatedBelow * issued || issued - served <= 10 + 4 * Math.sqrt(issued)) return null;
    return { offered: issued / last_ns * 1e9, served: served / last_ns * 1e9 };
  }

  // Disciplines of resources, as in `sim/engine/program.py`.
  const POOL = 2, GATE = 3;

  // Part of the run in which servers, threads and locks of each kind are in use: the busiest one and the mean, the
  // busiest kinds first.
  function busyKinds(result, names) {
    const kinds = new Map();
    for (const one of result.resources) {
      // Gates have no servers.
      if (one.discipline === GATE) continue;
      // The kernel adds the time of a unit of a pool when it is released.
      const taken = one.discipline === POOL ? one.capacity - one.free : 0;
      const busy = (one.spent_ns + taken * result.end_ns) / (one.capacity * result.end_ns);
      kinds.set(one.kind, [...(kinds.get(one.kind) || []), busy]);
    }
    return [...kinds].map(([kind, busy]) => ({
      name: names[kind], most: Math.min(1, Math.max(...busy)), mean: busy.reduce((sum, one) => sum + one, 0) / busy.length,
    })).sort((a, b) => b.most - a.most).filter((row) => row.most >= .005);
  }

  function busy(rows) {
    const shown = rows.map((row) => ({ name: row.name, share: row.most, text: `${(100 * row.most).toFixed(0)} %`, mark: row.mean }));
    return bars("Busy resources", shown);
  }

  const SAID_SHARES = [.1, .25, .5, .75, .9, .99];

  // Percentiles over latency, up to a share of the requests.
  function percentiles(title, found, highest, unit_ns) {
    const shares = Array.from({ length: Math.round(highest * 100) }, (_, index) => (index + 1) / 100);
    const said = SAID_SHARES.map((share) => `${100 * share} % below ${three(found.at(share) / unit_ns)}`);
    return plot(title, [0, found.at(highest) / unit_ns], [0, 100],
      (x, y) => path(shares.map((share) => [x(found.at(share) / unit_ns), y(100 * share)])), false, false, said);
  }

  // Bars with names and values. A mark is a line across its bar. On a phone, names are above their bars.
  function bars(title, rows) {
    const longest = Math.max(...rows.map((row) => row.name.length));
    const above = isPhone ? 18 : 0, step = 26 + above;
    const left = isPhone ? 1 : Math.min(275, 16 + 6.3 * longest), width = WIDTH - left - 60;
    const anchor = isPhone ? `x="${left}"` : `x="${left - 8}" text-anchor="end"`;
    let svg = picture(step * rows.length + 4, title, rows.map((row) => `${row.name} ${row.text}`));
    rows.forEach((row, index) => {
      const y = step * index + 4 + above;
      const x = left + width * row.mark;
      svg += `<text class="name" ${anchor} y="${y + (isPhone ? -5 : 14)}">${row.name}</text>`
        + `<rect class="back" x="${left}" y="${y}" width="${width}" height="18"/><rect class="bar" x="${left}" y="${y}" width="${width * row.share}" height="18"/>`
        + (row.mark === undefined ? "" : `<line class="grid" x1="${x}" x2="${x}" y1="${y}" y2="${y + 18}" style="stroke: var(--other); stroke-width: 3"/>`)
        + `<text x="${WIDTH - 52}" y="${y + 14}">${row.text}</text>`;
    });
    return `${svg}</svg>`;
  }

  return { bars, busy, busyKinds, dots, path, percentiles, plot, saturation, short, summary, three };
})();
