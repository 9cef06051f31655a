// The compiled engine in JavaScript: lay out the arrays of a run in the kernel's memory, call it, read the result.
// `described` is written by page.py: the arrays of the engine's world in their order, each with
// name, bytes per element and dimensions; offsets of fields; statuses; and the first entry of the calendar.
globalThis.stripesim = (() => {
  "use strict";

  const PAGE = 65536;
  const ALIGNED = 64;

  // An array is {bytes, shape}. Without bytes its contents do not matter, and its shape decides its size.
  function load(exports, described, world) {
    const at = [];
    let end = aligned(Number(exports.__heap_base.value));
    const words = [];
    for (const one of described.arrays) {
      const { shape } = world[one.name];
      const count = shape.reduce((product, length) => product * length, 1);
      at.push(end);
      words.push(0, 0, count, one.itemsize, end, ...shape, ...strides(shape, one.itemsize));
      end = aligned(end + count * one.itemsize + ALIGNED);
    }
    const table = end;
    end += 8 * words.length;
    const missing = Math.ceil(end / PAGE) - exports.memory.buffer.byteLength / PAGE;
    if (missing > 0) exports.memory.grow(missing);
    const memory = exports.memory.buffer;
    described.arrays.forEach((one, index) => {
      const { bytes } = world[one.name];
      if (bytes) new Uint8Array(memory, at[index], bytes.length).set(bytes);
    });
    new BigInt64Array(memory, table, words.length).set(words.map(BigInt));
    return { at, table };
  }

  function aligned(address) {
    return Math.ceil(address / ALIGNED) * ALIGNED;
  }

  function strides(shape, itemsize) {
    const found = [];
    let step = itemsize;
    for (const length of [...shape].reverse()) {
      found.unshift(step);
      step *= length;
    }
    return found;
  }

  // Call the kernel once. The status says what it lacks, as in world.py.
  function call(exports, described, world) {
    const { at, table } = load(exports, described, world);
    const status = Number(exports[described.entry](table));
    return { status, at };
  }

  // Room for slots, pins and parked requests that has sufficed so far. Results do not depend on room.
  const room = { slots: 512, pins: 1024, parked: 64 };

  // Run requests from the beginning to the end. A kernel that lacks room gets more and starts again.
  function run(exports, described, program, choice) {
    // A client's request spawns at most one more in most programs.
    let log = 2 * choice.requests + 64;
    for (let calls = 1; calls <= 12; calls++) {
      const world = worldOf(described, program, choice, { ...room, log });
      const { status, at } = call(exports, described, world);
      if (status === described.status.DONE) return { ...resultOf(exports.memory.buffer, described, at, world), calls };
      if (status === described.status.MORE_LOG) log *= 2;
      else if (status === described.status.MORE_SLOTS) room.slots *= 2;
      else if (status === described.status.MORE_PINS) room.pins *= 2;
      else if (status === described.status.MORE_PARKED) room.parked *= 2;
      else throw new Error(`the kernel returned status ${status}`);
    }
    throw new Error("the kernel found no room");
  }

  function worldOf(described, program, choice, room) {
    const world = { ...program };
    const clock = edited(world.clock, described.fields.clock, {
      seed_state: choice.seedState,
      slots_free: BigInt(room.slots),
    });
    world.clock = clock;
    world.streams = edited(world.streams, described.fields.streams, {
      queue_depth: BigInt(choice.queueDepth),
      planned: BigInt(choice.requests),
    });
    if (choice.arrivals_ns) world.plan = withArrivals(world.plan, choice.arrivals_ns);
    const bits = Number(read(clock, described.fields.clock.cell_bits));
    const cells = room.slots << bits;
    const calendar = cells + described.root + 4;
    for (const name of ["requests"]) world[name] = { shape: [room.slots] };
    if (world.keys.shape[0]) world.keys = { shape: [room.slots] };
    for (const name of ["pending", "links", "ready"]) world[name] = { shape: [cells] };
    for (const name of ["joined_ns", "since_ns"]) if (world[name].shape[0]) world[name] = { shape: [cells] };
    for (const name of ["times_ns", "cells"]) world[name] = { shape: [calendar] };
    world.ends_ns = { shape: [0, 1 << bits] };
    world.free_slots = { shape: [room.slots], bytes: descending(room.slots) };
    world.log = { shape: [room.log] };
    world.parked = { shape: [room.parked] };
    world.pins = { shape: [room.pins], bytes: new Uint8Array(16 * room.pins) };
    return world;
  }

  function edited(array, fields, values) {
    const bytes = array.bytes.slice();
    const view = new DataView(bytes.buffer);
    for (const [name, value] of Object.entries(values)) view.setBigUint64(fields[name], BigInt.asUintN(64, value), true);
    return { shape: array.shape, bytes };
  }

  function read(array, offset) {
    return new DataView(array.bytes.buffer, array.bytes.byteOffset).getBigInt64(offset, true);
  }

  function withArrivals(plan, arrivals_ns) {
    const bytes = plan.bytes.slice();
    const view = new DataView(bytes.buffer);
    const width = plan.shape[2];
    arrivals_ns.forEach((time_ns, row) => view.setBigInt64(8 * (row * width + 1), BigInt(time_ns), true));
    return { shape: plan.shape, bytes };
  }

  // Slots are used in ascending order, from the end of the list.
  function descending(count) {
    const slots = Int32Array.from({ length: count }, (_, index) => count - 1 - index);
    return new Uint8Array(slots.buffer);
  }

  function resultOf(memory, described, at, world) {
    const view = new DataView(memory);
    const start = Object.fromEntries(described.arrays.map((one, index) => [one.name, at[index]]));
    const size = Object.fromEntries(described.arrays.map((one) => [one.name, one.itemsize]));
    const clock = described.fields.clock;
    const log = described.fields.log;
    const logged = Number(view.getBigInt64(start.clock + clock.logged, true));
    // The first stream is the client's. Others are background, and requests that a stream's requests spawn.
    const streams = [];
    for (let row = 0; row < logged; row++) {
      const entry = start.log + row * size.log;
      const stream = (streams[view.getInt32(entry + log.stream, true)] ||= { issued_ns: [], completed_ns: [] });
      stream.issued_ns.push(Number(view.getBigInt64(entry + log.issued_ns, true)));
      stream.completed_ns.push(Number(view.getBigInt64(entry + log.completed_ns, true)));
    }
    const { issued_ns, completed_ns } = streams[0];
    const completions = new BigInt64Array(completed_ns.map(BigInt));
    const fields = described.fields.resources;
    const resources = [];
    for (let number = 0; number < world.resources.shape[0]; number++) {
      const entry = start.resources + number * size.resources;
      resources.push({
        kind: view.getInt8(entry + fields.kind),
        discipline: view.getInt8(entry + fields.discipline),
        capacity: view.getInt32(entry + fields.capacity, true),
        free: view.getInt32(entry + fields.free, true),
        spent_ns: Number(view.getBigInt64(entry + fields.spent_ns, true)),
      });
    }
    const end_ns = Number(view.getBigInt64(start.clock + clock.now_ns, true));
    const uses = Number(view.getBigInt64(start.clock + clock.uses, true));
    // As `completions_sha256` in the JSON of `stripesim run`, which digests the digests of cells.
    const fingerprint = hexadecimal(sha256(sha256(new Uint8Array(completions.buffer))));
    return { issued_ns, completed_ns, streams, resources, end_ns, uses, fingerprint };
  }

  // Poisson arrivals of a rate, from exponential numbers of mean 1, with the roundings of NumPy.
  function arrivals(exponentials, rate_per_s, count) {
    const scale = 1e9 / rate_per_s;
    const times_ns = [];
    let time = 0;
    for (let row = 0; row < count; row++) {
      const gap = scale * exponentials[row];
      time = row ? time + gap : gap;
      times_ns.push(halfToEven(time));
    }
    return times_ns;
  }

  function halfToEven(number) {
    const below = Math.floor(number);
    const rest = number - below;
    if (rest !== 0.5) return rest < 0.5 ? below : below + 1;
    return below % 2 ? below + 1 : below;
  }

  // FIPS 180-4. `crypto.subtle` does not exist on every page from a disk.
  const primes = [];
  for (let number = 2; primes.length < 64; number++) if (primes.every((prime) => number % prime)) primes.push(number);
  const fraction = (root) => Math.floor((root - Math.floor(root)) * 2 ** 32);
  const ROUNDS = primes.map((prime) => fraction(Math.cbrt(prime)));
  const START = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
  const rotated = (word, by) => (word >>> by) | (word << (32 - by));

  function sha256(bytes) {
    const length = (bytes.length + 72) & ~63;
    const padded = new Uint8Array(length);
    padded.set(bytes);
    padded[bytes.length] = 0x80;
    const view = new DataView(padded.buffer);
    view.setBigUint64(length - 8, 8n * BigInt(bytes.length));
    const state = Uint32Array.from(START);
    const words = new Uint32Array(64);
    for (let block = 0; block < length; block += 64) {
      for (let i = 0; i < 16; i++) words[i] = view.getUint32(block + 4 * i);
      for (let i = 16; i < 64; i++) {
        const s0 = rotated(words[i - 15], 7) ^ rotated(words[i - 15], 18) ^ (words[i - 15] >>> 3);
        const s1 = rotated(words[i - 2], 17) ^ rotated(words[i - 2], 19) ^ (words[i - 2] >>> 10);
        words[i] = words[i - 16] + s0 + words[i - 7] + s1;
      }
      let [a, b, c, d, e, f, g, h] = state;
      for (let i = 0; i < 64; i++) {
        const s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
        const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i] + words[i]) | 0;
        const s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
        const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
      }
      [a, b, c, d, e, f, g, h].forEach((value, i) => (state[i] += value));
    }
    const digest = new DataView(new ArrayBuffer(32));
    state.forEach((word, i) => digest.setUint32(4 * i, word));
    return new Uint8Array(digest.buffer);
  }

  function hexadecimal(bytes) {
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  function fromBase64(text) {
    const characters = atob(text);
    const bytes = new Uint8Array(characters.length);
    for (let index = 0; index < bytes.length; index++) bytes[index] = characters.charCodeAt(index);
    return bytes;
  }

  async function inflated(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  // Arrays of programs as page.py stores them, each decoded once.
  class Arrays {
    constructor(described, stored) {
      this.described = described;
      this.stored = stored;
      this.decoded = new Map();
    }

    // The world of a program, which is the numbers of its arrays.
    async world(numbers) {
      const arrays = await Promise.all(numbers.map((number) => this.array(number)));
      return Object.fromEntries(this.described.arrays.map((one, index) => [one.name, arrays[index]]));
    }

    array(number) {
      if (!this.decoded.has(number)) this.decoded.set(number, decoded(...this.stored[number]));
      return this.decoded.get(number);
    }
  }

  async function decoded(text, shape, isDeflated) {
    const bytes = fromBase64(text);
    return { bytes: isDeflated ? await inflated(bytes) : bytes, shape };
  }

  // Return the memory and the kernel of a module, which imports nothing.
  async function instantiate(bytes) {
    const { instance } = await WebAssembly.instantiate(bytes, {});
    return instance.exports;
  }

  return { Arrays, arrivals, call, fromBase64, hexadecimal, instantiate, run, sha256 };
})();
