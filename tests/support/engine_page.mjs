// Run the engine's WebAssembly in Node: `node engine_page.mjs ENGINE_JS KERNELS_WASM INPUT`. Prints JSON.
// INPUT is JSON with `described`, and `calls` (worlds before and after calls of the kernel, in a file of bytes) or
// `runs` (programs and choices).
import fs from "fs";

const [script, wasm, input] = process.argv.slice(2);
(0, eval)(fs.readFileSync(script, "utf8"));
const { stripesim } = globalThis;
const given = JSON.parse(fs.readFileSync(input, "utf8"));
const module = fs.readFileSync(wasm);

function compared(exports, described, one, bytes) {
  const world = {};
  for (const [index, part] of one.arrays.entries()) {
    const { name } = described.arrays[index];
    world[name] = { shape: part.shape, bytes: bytes.subarray(part.at, part.at + part.length) };
  }
  const { status, at } = stripesim.call(exports, described, world);
  if (status !== one.status) return `status ${status} in place of ${one.status}`;
  for (const [index, part] of one.arrays.entries()) {
    const own = Buffer.from(exports.memory.buffer, at[index], part.length);
    const wanted = bytes.subarray(part.at + part.length, part.at + 2 * part.length);
    if (Buffer.compare(own, wanted) !== 0) return described.arrays[index].name;
  }
  return "";
}

const answers = [];
const exports = await stripesim.instantiate(module);
if (given.calls) {
  const bytes = fs.readFileSync(given.bytes);
  for (const one of given.calls) answers.push(compared(exports, given.described, one, bytes));
}
const arrays = new stripesim.Arrays(given.described, given.arrays);
for (const one of given.runs || []) {
  const world = await arrays.world(one.program);
  const gaps = one.gaps;
  const arrivals_ns = gaps && stripesim.arrivals(gaps, one.rate, one.requests);
  const choice = { queueDepth: one.queue_depth, requests: one.requests, seedState: BigInt(one.state), arrivals_ns };
  const result = stripesim.run(exports, given.described, world, choice);
  answers.push([result.fingerprint, result.end_ns]);
}
console.log(JSON.stringify(answers));
