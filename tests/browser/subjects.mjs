// What the tests look at: the mock of ui/dev, or a real session that runs a program.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const python = `${root}.venv/bin/python`;
export const program = `${root}tests/browser/program.py`;

/** A made-up cluster. */
export function mock({ tasks = 20_000 } = {}) {
  const command = [
    process.execPath,
    "ui/dev/mock.mjs",
    "--port",
    "0",
    "--tasks",
    String(tasks),
    "--serve",
    "ui/dist",
  ];
  return start("mock", command);
}

/** Whether there is an engine with a dashboard here. */
export function engineMissing() {
  return existsSync(python) ? false : "oxiray is not built: make build";
}

/** A session, or a cluster, that runs program.py. */
export function session({ tasks = 300, nodes = 1, pause = 0, script = program, env = {} } = {}) {
  const options = ["--tasks", tasks, "--nodes", nodes, "--pause", pause].map(String);
  return start("session", [python, script, ...options], env);
}

/**
 * Starts a program whose first line is its dashboard's address and the name of a log that grows, and
 * which ends with its input.
 */
async function start(name, [command, ...args], env = {}) {
  const child = spawn(command, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const lines = createInterface({ input: child.stdout });
  const [url, log] = await Promise.race([
    once(lines, "line").then(([line]) => line.trim().split(" ")),
    ended.then(([code]) => {
      throw new Error(
        `${command} ${args.join(" ")} ended with ${code} before it said where it listens`,
      );
    }),
  ]);
  return {
    name,
    url,
    log,
    async stop() {
      child.stdin.end();
      if (name === "mock") child.kill();
      await ended;
    },
  };
}
