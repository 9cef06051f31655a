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

  const rs = (k, m) => `rs:${k},${m}`;
  const { abs, floor, log, max, min } = Math;
  const FUNCTIONS = { abs, erlang_c_wait, floor, harmonic, log, max, min, rs };

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

  // Numbers may have commas between thousands.
  function read(text) {
    const number = text.trim().replace(/,(?=\d{3}(\D|$))/g, "");
    return number === "" || Number.isNaN(Number(number)) ? text.trim() : String(Number(number));
  }

  // As `Question.judge` of teach.py.
  function judged(answer, value, tolerance, unit) {
    if (typeof value === "string") {
      const compared = (text) => text.replace(/\s/g, "").toLowerCase();
      return compared(answer) === compared(value) ? "right" : "not yet";
    }
    const number = Number(answer);
    if (answer === "" || Number.isNaN(number)) return unit ? `not yet: wanted a number of ${unit}` : "not yet: wanted a number";
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

  // Simulates runs of a lesson with the engine, each once per seed and load.
  class Simulator {
    constructor(exports, data) {
      this.exports = exports;
      this.data = data;
      this.arrays = new Map();
    }

    async world(program) {
      const world = {};
      for (const [index, number] of program.arrays.entries()) {
        if (!this.arrays.has(number)) {
          const [text, shape] = this.data.arrays[number];
          this.arrays.set(number, { bytes: await stripesim.inflated(text), shape });
        }
        world[this.data.described.arrays[index].name] = this.arrays.get(number);
      }
      return world;
    }

    // A load is requests in flight, or requests per second. Without one, the run's own.
    async measured(name, names, load) {
      const run = this.data.runs[name];
      const program = run.programs[run.varied.map((one) => names[one]).join("|")];
      const own = load === undefined ? valueOf(run.in_flight || run.rate_per_s, names) : load;
      const arrivals_ns = run.in_flight ? null : stripesim.arrivals(this.data.gaps, own, program.requests);
      const queueDepth = run.in_flight ? own : 0;
      const settings = { queueDepth, requests: program.requests, seedState: BigInt(this.data.state), arrivals_ns };
      const result = stripesim.run(this.exports, this.data.described, await this.world(program), settings);
      const found = charts.summary(result);
      const busy = charts.busyKinds(result, program.kinds);
      return { found, busy, load: own, rate: found.rate, mean_ms: found.mean_ns / 1e6, p99_ms: found.at(.99) / 1e6 };
    }

    // The drawn numbers and all runs, by name.
    async names(seed) {
      const names = numbersOf(this.data, seed);
      const runs = {};
      for (const name of Object.keys(this.data.runs)) runs[name] = await this.measured(name, names);
      return { ...names, ...runs };
    }
  }

  return { Simulator, filled, judged, numbersOf, read, signature, textOf, valueOf };
})();
