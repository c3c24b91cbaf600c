// A `hookledger dev` with every shipped profile, on a free port, and what a case needs of it.
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";

const freePort = () =>
  new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/// Every profile of infra/ in one file; fal's keys come from a variable, since no network is used here.
function profiles(root, work) {
  const folder = path.join(root, "infra/profiles");
  const files = [path.join(root, "infra/providers.toml"), ...fs.readdirSync(folder).map((f) => path.join(folder, f))];
  const text = files.map((file) => fs.readFileSync(file, "utf8")).join("\n");
  const file = path.join(work, "providers.toml");
  fs.writeFileSync(file, text.replace(/"jwks:[^"]*"/, '"FAL_JWKS"'));
  return file;
}

export async function start(root, bin, work, secrets) {
  const file = profiles(root, work);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const env = { ...process.env, ...secrets, HOOKLEDGER_LOG: "warn" };
  const args = ["dev", "--port", String(port), "--public-url", url, "--providers", file];
  const log = fs.openSync(path.join(work, "dev.log"), "w");
  const child = spawn(bin, args, { env, stdio: ["ignore", "pipe", log] });
  await new Promise((resolve, reject) => {
    child.stdout.once("data", resolve);
    child.once("exit", () => reject(new Error("dev did not start: see dev.log")));
  });
  child.stdout.resume();
  return {
    url,
    stop: () => child.kill("SIGINT"),
    /// Posts exact bytes; the status and the answer.
    async post(slug, headers, body) {
      const answer = await fetch(`${url}/webhooks/${slug}`, { method: "POST", headers, body });
      return { status: answer.status, text: await answer.text() };
    },
    /// The headers that `hookledger send` would add, without sending.
    signed(slug, body, more = []) {
      const bodyFile = path.join(work, "body");
      fs.writeFileSync(bodyFile, body);
      const args = ["send", slug, bodyFile, "--print", "--providers", file, "--url", url, ...more];
      const out = spawnSync(bin, args, { env, encoding: "utf8" });
      if (out.status !== 0) throw new Error(out.stderr);
      return JSON.parse(out.stdout);
    },
  };
}
