// One row per scheme: see `run`. A row passes if the genuine delivery is taken (2xx) by the server and by the library
// where it verifies, and a changed one is refused (401) by the server.
import fs from "node:fs";
import path from "node:path";
import { cases, secrets } from "./cases.mjs";
import { start } from "./server.mjs";

const [root, bin] = process.argv.slice(2).map((p) => path.resolve(p));
const work = path.dirname(path.resolve(process.argv[1]));
const version = (name) => {
  const file = path.join(work, "node_modules", name, "package.json");
  return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")).version : "";
};

const server = await start(root, bin, work, secrets);
let failed = 0;
const rows = [["scheme", "library", "direction", "result"]];
for (const one of cases) {
  let result = "ok";
  try {
    const made = await one.make(server);
    const genuine = await server.post(one.slug, made.headers, made.body);
    if (genuine.status < 200 || genuine.status > 299) throw new Error(`genuine: ${genuine.status} ${genuine.text}`);
    if (/quarantined/.test(genuine.text)) throw new Error(`genuine: ${genuine.text}`);
    if (made.changed !== null) {
      const changed = await server.post(one.slug, made.changedHeaders ?? made.headers, made.changed ?? made.body + " ");
      if (changed.status !== 401) throw new Error(`changed: ${changed.status}`);
    }
  } catch (error) {
    result = `FAILED ${error.message.split("\n")[0]}`;
    failed += 1;
  }
  const library = one.library ? `${one.library} ${version(one.library)}` : "none (node:crypto)";
  rows.push([one.scheme ?? one.slug, library, one.direction, result]);
}
server.stop();
const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column].length)) + 2);
for (const row of rows) console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(""));
console.log(failed === 0 ? `${cases.length} rows, all ok` : `${failed} of ${cases.length} rows failed`);
process.exitCode = failed === 0 ? 0 : 1;
