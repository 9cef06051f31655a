// Lessons in a page: what Python does in teach.py, expressions.py and page_lessons.py, in JavaScript.
globalThis.lessons = (() => {
  "use strict";

  const utf8 = (text) => new TextEncoder().encode(text);

  // As `Draw.choose` of teach.py.
  function drawn(seed, name, options) {
    const digest = stripesim.sha256(utf8(`${seed}/${name}`));
    const number = new DataView(digest.buffer).getBigUint64(0);
    return options[Number(number % BigInt(options.length))];
  }

  function numbersOf(lesson, seed) {
    return Object.fromEntries(Object.entries(lesson.numbers).map(([name, options]) => [name, drawn(seed, name, options)]));
  }

  // The functions of expressions.py.
  function harmonic(count) {
    let sum = 0;
    for (let number = 1; number <= count; number++) sum += 1 / number;
    return sum;
  }

  function erlang_c_wait(servers, load) {
    const offered = servers * load;
    let term = 1;
    let sum = 0;
    for (let number = 0; number < servers; number++) {
      sum += term;
      term *= offered / (number + 1);
    }
    const waiting = term / (1 - load);
    return waiting / (sum + waiting) / (servers * (1 - load));
  }

  function years_to_loss(drives, losses, failures_per_year, rebuild_h) {
    const rebuilt_per_year = 8766 / rebuild_h;
    let step = 0;
    let years = 0;
    for (let lost = 0; lost <= losses; lost++) {
      step = (1 + lost * rebuilt_per_year * step) / ((drives - lost) * failures_per_year);
      years += step;
    }
    return years;
  }

  function choose(count, some) {
    let ways = 1;
    for (let number = 0; number < some; number++) ways = ways * (count - number) / (number + 1);
    return ways;
  }

  const rs = (k, m) => `rs:${k},${m}`;
  const parameters = (scheme) => scheme.split(":")[1].split(",").map(Number);
  const clay = (k, m, d) => `clay:${k},${m},${d}`;
  const { abs, exp, floor, log, max, min, sqrt } = Math;
  const FUNCTIONS = { abs, choose, clay, erlang_c_wait, exp, floor, harmonic, log, max, min, parameters, rs, sqrt, years_to_loss };

  function valueOf(expression, names) {
    const known = { ...FUNCTIONS, ...names };
    return new Function(...Object.keys(known), `"use strict"; return (${expression});`)(...Object.values(known));
  }

  function filled(template, names) {
    return template.replace(/\{([^{}]+)\}/g, (_, expression) => textOf(valueOf(expression, names)));
  }

  // As `answer_text` of teach.py.
  function textOf(value) {
    if (typeof value !== "number") return String(value);
    if (Number.isInteger(value) || Math.abs(value) >= 1000) return toWhole(value).toLocaleString("en");
    return String(toThreeDigits(value));
  }

  // Python rounds a tie to the even digit, JavaScript does not.
  function toWhole(value) {
    const rounded = Math.round(value);
    return rounded - value === 0.5 && rounded % 2 ? rounded - 1 : rounded;
  }

  function toThreeDigits(value) {
    const [, digits, rest, power] = value.toExponential(20).match(/^(-?\d\.\d\d)(\d+)(e.*)$/);
    const isTie = /^50*$/.test(rest);
    return isTie && digits.at(-1) % 2 === 0 ? Number(digits + power) : Number(value.toPrecision(3));
  }

  // Commas may separate thousands: 12,500 is a number, 0,125 and 12,5 are none. 1e999 is no number that an answer can be.
  function read(text) {
    const typed = text.trim();
    const isGrouped = /^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(typed);
    const number = isGrouped ? typed.replaceAll(",", "") : typed;
    return number === "" || !Number.isFinite(Number(number)) ? typed : String(Number(number));
  }

  // As `Question.judge` of teach.py.
  function judged(answer, value, tolerance, unit) {
    if (typeof value === "string") {
      const compared = (text) => text.replace(/\s/g, "").toLowerCase().replaceAll("(", ":").replaceAll(")", "");
      return compared(answer) === compared(value) ? "right" : "not yet";
    }
    const number = Number(answer);
    if (answer === "" || !Number.isFinite(number)) return unit ? `not yet: wanted a number of ${unit}` : "not yet: wanted a number";
    const room = Math.max(tolerance * Math.max(Math.abs(number), Math.abs(value)), 1e-12);
    if (Math.abs(number - value) <= room) return "right";
    if (value && number / value <= 0) return "not yet: the sign or the zero";
    const verdict = number > value ? "not yet: too high" : "not yet: too low";
    const isFar = !value || number / value < 0.5 || number / value > 2;
    return isFar ? `${verdict} by more than a factor of two` : verdict;
  }

  // As `signature` of teach.py: HMAC-SHA256 of the document with sorted keys, in ASCII.
  function signature(document, key) {
    const text = sorted(document).replace(/[\u007f-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
    return stripesim.hexadecimal(hmac(utf8(`stripesim ${key}`), utf8(text)));
  }

  function sorted(value) {
    if (Array.isArray(value)) return `[${value.map(sorted).join(",")}]`;
    if (value === null || typeof value !== "object") return JSON.stringify(value);
    return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${sorted(value[key])}`).join(",")}}`;
  }

  function hmac(key, message) {
    const block = new Uint8Array(64);
    block.set(key.length > 64 ? stripesim.sha256(key) : key);
    const inner = stripesim.sha256(joined(block.map((byte) => byte ^ 0x36), message));
    return stripesim.sha256(joined(block.map((byte) => byte ^ 0x5c), inner));
  }

  function joined(first, second) {
    const bytes = new Uint8Array(first.length + second.length);
    bytes.set(first);
    bytes.set(second, first.length);
    return bytes;
  }

  const meanOf = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;

  // As `TracePart` of page_data.py. A row is [issued_ns, completed_ns, is_write].
  function tracePart(rows) {
    const timeOf = ([issued, completed]) => completed - issued;
    const mean_ms = (some) => meanOf(some.map(timeOf)) / 1e6;
    const reads = (some) => some.filter((row) => !row[2]);
    const mean_ns = (rows.at(-1)[0] - rows[0][0]) / (rows.length - 1);
    const steps = rows.slice(1).map((row, index) => (row[0] - rows[index][0]) / mean_ns);
    const half = Math.floor(rows.length / 2);
    const alone = [];
    const beside = [];
    rows.forEach((row, index) => {
      if (row[2]) return;
      const others = rows.slice(0, index).filter((other) => other[1] > row[0]);
      if (!others.length) alone.push(row);
      else if (others.some((other) => other[2])) beside.push(row);
    });
    return {
      gaps: [0, ...steps],
      rate: 1e9 / mean_ns,
      response_ms: mean_ms(rows),
      cv2: steps.reduce((sum, step) => sum + step ** 2, 0) / steps.length - 1,
      reads: reads(rows).length,
      first_reads_ms: mean_ms(reads(rows.slice(0, half))),
      second_reads_ms: mean_ms(reads(rows.slice(half))),
      alone_ms: mean_ms(alone),
      beside_ms: mean_ms(beside),
    };
  }

  const last = (values) => values.reduce((most, one) => Math.max(most, one), 0);

  // As `Measured` of page_lessons.py: with a second stream, only what completes before the first of both ends.
  function measuredOf([first, second], metMax) {
    const until_ns = second ? Math.min(last(first.completed_ns), last(second.completed_ns)) : Infinity;
    const counts = first.completed_ns.map((time) => time <= until_ns);
    const counted = {
      issued_ns: first.issued_ns.filter((_, row) => counts[row]),
      completed_ns: first.completed_ns.filter((_, row) => counts[row]),
    };
    const found = charts.summary(counted);
    const numbers = { found, rate: found.rate, mean_ms: found.mean_ns / 1e6, p99_ms: found.at(.99) / 1e6, met: met(counted, metMax) };
    if (!second) return numbers;
    const before = second.completed_ns.filter((time) => time <= until_ns);
    return { ...numbers, rate: found.latencies.length / until_ns * 1e9, other_rate: before.length / until_ns * 1e9, other_end_s: last(second.completed_ns) / 1e9 };
  }

  // The part of the run in which the busiest drive works, and the mean of those that work.
  function busyDrives(result, kind) {
    const used = result.resources.filter((one) => one.kind === kind && one.spent_ns > 0);
    const shares = used.length ? used.map((one) => one.spent_ns / (one.capacity * result.end_ns)) : [0];
    return { busiest_drive: last(shares), mean_drive: meanOf(shares) };
  }

  // The part of the requests that find at least 0, 1, … others in the system.
  function met({ issued_ns, completed_ns }, most) {
    const ascending = (a, b) => a - b;
    const completed = [...completed_ns].sort(ascending);
    const counts = new Array(most + 1).fill(0);
    let gone = 0;
    [...issued_ns].sort(ascending).forEach((issued, earlier) => {
      while (gone < completed.length && completed[gone] <= issued) gone++;
      for (let least = 0; least <= Math.min(most, earlier - gone); least++) counts[least]++;
    });
    return counts.map((count) => count / issued_ns.length);
  }

  // Simulates runs of a lesson with the engine, each once per seed and load.
  class Simulator {
    constructor(exports, data) {
      this.exports = exports;
      this.data = data;
      this.arrays = new stripesim.Arrays(data.described, data.arrays);
    }

    // A load is requests in flight, or requests per second. Without one, the run's own.
    async measured(name, names, load) {
      const run = this.data.runs[name];
      const program = run.programs[run.varied.map((one) => names[one]).join("|")];
      const own = load === undefined ? valueOf(run.in_flight || run.rate_per_s, names) : load;
      const gaps = run.arrivals === "trace" ? names.part.gaps : this.data.gaps;
      const requests = run.rate_per_s ? gaps.length : program.requests;
      const arrivals_ns = run.rate_per_s ? stripesim.arrivals(gaps, own, requests) : null;
      const queueDepth = run.in_flight ? own : 0;
      const settings = { queueDepth, requests, seedState: BigInt(this.data.state), arrivals_ns };
      const result = stripesim.run(this.exports, this.data.described, await this.arrays.world(program.arrays), settings);
      const busy = charts.busyKinds(result, program.kinds);
      const drives = busyDrives(result, program.drive);
      return { ...measuredOf(result.streams.slice(0, program.streams), this.data.met_max), ...drives, busy, load: own };
    }

    // The drawn numbers, recorded data and all runs, by name.
    async names(seed) {
      const names = numbersOf(this.data, seed);
      if (this.data.trace.length) names.part = tracePart(this.data.trace.slice(names.start, names.start + names.count));
      if (this.data.report) names.report = this.data.report;
      const runs = {};
      for (const name of Object.keys(this.data.runs)) runs[name] = await this.measured(name, names);
      return { ...names, ...runs };
    }
  }

  return { Simulator, filled, judged, numbersOf, read, signature, textOf, valueOf };
})();
