// Compute lessons in Node as their page does: `node lesson_page.mjs KERNELS_WASM INPUT SCRIPT...`. Prints JSON.
// INPUT is JSON with `data`, what the page stores, and `seeds`, `documents` to sign with their keys, `judged`
// answers, and `numbers` to write.
import fs from "fs";

const [wasm, input, ...scripts] = process.argv.slice(2);
for (const script of scripts) (0, eval)(fs.readFileSync(script, "utf8"));
const { lessons, stripesim } = globalThis;
const { data, seeds, judged, documents, numbers } = JSON.parse(fs.readFileSync(input, "utf8"));
const exports = await stripesim.instantiate(fs.readFileSync(wasm));
const simulator = new lessons.Simulator(exports, data);
const opened = [];
for (const seed of seeds) {
  const names = await simulator.names(seed);
  const runs = Object.fromEntries(
    Object.keys(data.runs).map((name) => {
      const { rate, mean_ms, p99_ms, met, busiest_drive, mean_drive, other_rate = 0, other_end_s = 0 } = names[name];
      return [name, [rate, mean_ms, p99_ms, ...met, busiest_drive, mean_drive, other_rate, other_end_s]];
    }),
  );
  const questions = data.questions.map((question) => {
    const value = lessons.valueOf(question.answer, names);
    const why = lessons.filled(question.why, { ...names, answer: value });
    return [lessons.filled(question.text, names), value, why, lessons.filled(question.hint, names)];
  });
  opened.push({ runs, questions });
}
const verdicts = judged.map(([text, value, tolerance, unit]) => lessons.judged(lessons.read(text), value, tolerance, unit));
const signatures = documents.map(([document, key]) => lessons.signature(document, key));
console.log(JSON.stringify({ opened, verdicts, signatures, texts: numbers.map(lessons.textOf) }));
