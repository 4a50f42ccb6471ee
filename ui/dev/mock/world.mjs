// The made-up cluster: three nodes, their workers, actors, objects, jobs and logs, and the schedule
// of tasks. Gives rows in the shape of the REST API.
import { Schedule, KINDS } from "./schedule.mjs";
import { logFiles } from "./logs.mjs";

const GIB = 2 ** 30;
const hex = (n, digits) => n.toString(16).padStart(digits, "0");

export class World {
  constructor({ tasks = 20_000, pastMs = 90_000 } = {}) {
    this.started = Date.now() - pastMs - 4000;
    this.nodes = ["head", "left", "right"].map((name, i) => ({
      id: hex(0x5eed0000 + i * 4097, 8).repeat(7),
      name,
      number: i + 1,
      ip: `10.0.0.${i + 1}`,
      cpus: [4, 8, 8][i],
    }));
    this.workers = this.nodes.flatMap((node, n) =>
      Array.from({ length: node.cpus }, (_, i) => ({
        id: hex(0xabc000 + n * 64 + i, 8).repeat(7),
        pid: 4100 + n * 1000 + i * 7,
        node,
      })),
    );
    this.schedule = new Schedule({
      now: Date.now(),
      past: tasks,
      pastMs,
      workers: this.workers.length,
    });
    this.logs = logFiles(this);
  }

  taskId(i) {
    // The counter's lowest byte comes first, as in the engine's ids.
    const bytes = Array.from({ length: 5 }, (_, k) => hex(Math.floor(i / 256 ** k) % 256, 2)).join(
      "",
    );
    return `${bytes}010001ffffffff010001000000000001000000`.padEnd(48, "0").slice(0, 48);
  }

  taskIndex(id) {
    const bytes = id.slice(0, 10).match(/../g) ?? [];
    const i = bytes.reduce((n, byte, k) => n + Number.parseInt(byte, 16) * 256 ** k, 0);
    return id.length === 48 && i < this.schedule.known(Date.now()) ? i : null;
  }

  task(i, now = Date.now()) {
    const { schedule } = this;
    const state = schedule.state(i, now);
    const worker = this.workers[schedule.worker[i]];
    const kind = KINDS[schedule.kind[i]];
    const began = schedule.start[i] <= now;
    const ended = schedule.end[i] <= now;
    return {
      task_id: this.taskId(i),
      attempt_number: 0,
      name: kind.name,
      state,
      job_id: "01000000",
      actor_id: kind.actor ? this.actorId(0) : null,
      type: kind.actor ? "ACTOR_TASK" : "NORMAL_TASK",
      func_or_class_name: kind.name,
      parent_task_id: null,
      node_id: began ? worker.node.id : null,
      worker_id: began ? worker.id : null,
      worker_pid: began ? worker.pid : null,
      error_type: state === "FAILED" ? "ValueError" : null,
      creation_time_ms: schedule.created(i),
      start_time_ms: began ? schedule.start[i] : null,
      end_time_ms: ended ? schedule.end[i] : null,
      duration_ms: began ? Math.min(now, schedule.end[i]) - schedule.start[i] : null,
    };
  }

  taskDetail(i) {
    const row = this.task(i);
    const took = row.duration_ms ?? 0;
    const began = row.start_time_ms !== null;
    const waited = began ? row.start_time_ms - row.creation_time_ms : 0;
    return {
      ...row,
      error_message: row.state === "FAILED" ? traceback(row) : null,
      fetch_ms: row.start_time_ms === null ? null : took * 0.08,
      execute_ms: row.start_time_ms === null ? null : took * 0.86,
      store_ms: row.end_time_ms === null ? null : took * 0.06,
      needs: this.schedule.needs(i).map((j) => this.taskId(j)),
      feeds: this.schedule.feeds(i).map((j) => this.taskId(j)),
      events: began
        ? [
            { state: "PENDING_ARGS_AVAIL", created_ms: row.creation_time_ms },
            { state: "PENDING_NODE_ASSIGNMENT", created_ms: row.creation_time_ms + waited * 0.3 },
            { state: "SUBMITTED_TO_WORKER", created_ms: row.creation_time_ms + waited * 0.9 },
            { state: "RUNNING", created_ms: row.start_time_ms },
          ]
        : [],
      task_log_info: row.worker_pid && {
        stdout_file: `worker-${row.worker_pid}.out`,
        stderr_file: `worker-${row.worker_pid}.err`,
      },
      why: row.start_time_ms === null ? this.why() : null,
    };
  }

  why() {
    return "It waits for a CPU: all 20 of the cluster are in use, and 12 tasks came before it.";
  }

  actorId(i) {
    return `${hex(i + 1, 8)}000100010000000001000000`;
  }

  actors() {
    const classes = [
      "ParameterServer",
      "Evaluator",
      "Evaluator",
      "ReplayBuffer",
      "Logger",
      "Learner",
    ];
    return classes.map((name, i) => {
      const worker = this.workers[i * 3];
      const state = i === 2 ? "DEAD" : i === 5 ? "RESTARTING" : "ALIVE";
      return {
        actor_id: this.actorId(i),
        class_name: name,
        state,
        job_id: "01000000",
        name: i === 0 ? "params" : null,
        node_id: worker.node.id,
        pid: worker.pid,
        ray_namespace: "default",
        is_detached: i === 3,
        num_restarts: i === 5 ? 2 : 0,
        required_resources: i % 2 ? { CPU: 1 } : { CPU: 0.5, GPU: 0.25 },
        death_cause:
          state === "DEAD" ? "Its process was killed by signal 9 (out of memory?)." : null,
      };
    });
  }

  nodeRows(now = Date.now()) {
    const wave = (i) => Math.sin(now / 9000 + i * 2);
    return this.nodes.map((node, i) => {
      const busy = Math.min(node.cpus, Math.round((0.75 + 0.25 * wave(i)) * node.cpus));
      return {
        node_id: node.id,
        node_number: node.number,
        node_ip: node.ip,
        node_name: node.name,
        is_head_node: i === 0,
        state: "ALIVE",
        state_message: null,
        resources_total: { CPU: node.cpus, GPU: i === 2 ? 2 : 0, memory: 16 * GIB },
        resources_available: { CPU: node.cpus - busy, GPU: i === 2 ? 1.25 : 0, memory: 12 * GIB },
        labels: {},
        start_time_ms: this.started + i * 700,
        end_time_ms: null,
        store_size: 4 * GIB,
        store_used: Math.round((1.4 + 0.5 * wave(i) + i * 0.4) * GIB),
        store_objects: 210 + Math.round(60 * wave(i)),
        disk_bytes: i === 1 ? 3.2e8 : 0,
        waiting: [],
        workers: node.cpus,
        pid: 4000 + i,
        cpu_percent: 64 + 22 * wave(i) + 6 * Math.sin(now / 1700),
        memory_used: Math.round((6.2 + wave(i) * 0.8) * GIB),
        memory_total: 16 * GIB,
      };
    });
  }

  workerRows() {
    const rows = this.workers.map((worker, i) => ({
      worker_id: worker.id,
      pid: worker.pid,
      node_id: worker.node.id,
      worker_type: "WORKER",
      is_alive: i !== 7,
      activity: i % 3 === 0 && i < 18 ? "actor" : i % 5 === 1 ? "idle" : "task",
      job_id: "01000000",
      actor_id: i % 3 === 0 && i < 18 ? this.actorId(i / 3) : null,
      start_time_ms: this.started + 900 + i * 40,
      exit_detail: i === 7 ? "killed by signal 9" : null,
      rss: 48e6 + ((i * 7919) % 300) * 1e6,
    }));
    const driver = { ...rows[1], worker_id: "d".repeat(56), pid: 3999, worker_type: "DRIVER" };
    return [{ ...driver, activity: null, rss: 92e6 }, ...rows];
  }

  jobs() {
    return ["train.py --tiles 4000", "evaluate.py", "notebook"].map((entrypoint, i) => ({
      job_id: `0${i + 1}000000`,
      status: ["RUNNING", "SUCCEEDED", "FAILED"][i],
      entrypoint: `python ${entrypoint}`,
      driver_pid: 3999 - i * 11,
      driver_node_id: this.nodes[0].id,
      namespace: "default",
      message: i === 2 ? "the driver was killed by signal 9" : null,
      start_time_ms: this.started + i * 5000,
      end_time_ms: i === 0 ? null : this.started + 30_000 + i * 9000,
    }));
  }

  placementGroups() {
    const bundles = (placed) =>
      [0, 1, 2].map((i) => ({
        bundle_index: i,
        resources: { CPU: 2, GPU: placed ? 1 : 16 },
        node_id: placed ? this.nodes[i % this.nodes.length].id : null,
      }));
    return ["CREATED", "PENDING", "REMOVED"].map((state, i) => ({
      placement_group_id: `0${i + 1}`.padEnd(36, "0"),
      name: ["trainers", "far too large", ""][i],
      state,
      creator_job_id: "01000000",
      strategy: ["STRICT_SPREAD", "PACK", "SPREAD"][i],
      is_detached: i === 0,
      ray_namespace: "default",
      bundle_count: 3,
      node_ids: state === "CREATED" ? this.nodes.map((node) => node.id) : [],
      why: [
        null,
        "its bundle 0, {CPU: 2, GPU: 16}, fits nowhere: no node is large enough",
        "it was removed by remove_placement_group()",
      ][i],
      start_time_ms: this.started + 2000 + i * 700,
      end_time_ms: state === "REMOVED" ? this.started + 9000 : null,
      bundles: bundles(state === "CREATED"),
    }));
  }

  objects() {
    return Array.from({ length: 240 }, (_, i) => {
      const worker = this.workers[i % this.workers.length];
      const place = ["memory", "memory", "memory", "process", "disk", "pending"][i % 6];
      return {
        object_id: `${this.taskId(i * 3)}01000000`,
        object_size: place === "pending" ? null : Math.round(2e8 / (1 + i * 0.7)),
        task_status: place === "pending" ? "RUNNING" : "FINISHED",
        reference_type: "LOCAL_REFERENCE",
        call_site: null,
        type: i % 4 ? "WORKER" : "DRIVER",
        pid: i % 4 ? worker.pid : 3999,
        ip: worker.node.ip,
        node_id: worker.node.id,
        place,
        references: { local: 1 + (i % 3), tasks: i % 4 ? 0 : 1, captured: 0, in_flight: 0 },
        borrowers: i % 5 === 0 ? 2 : 0,
        pinned: i % 9 === 0,
      };
    });
  }

  groups(now = Date.now()) {
    const counts = this.schedule.counts(now);
    const rows = KINDS.map((kind, i) => ({
      name: kind.name,
      type: kind.actor ? "ACTOR_TASK" : "NORMAL_TASK",
      states: counts[i],
    }));
    return { rows, total: rows.reduce((n, row) => n + sum(row.states), 0) };
  }

  cluster(now = Date.now()) {
    const nodes = this.nodeRows(now);
    const total = (pick) => addUp(nodes.map(pick));
    const tasks = addUp(this.groups(now).rows.map((row) => row.states));
    return {
      session: "session_2026-11-16_09-00-00",
      address: "10.0.0.1:6379",
      python_version: "3.12.4",
      oxiray_version: "0.1.0",
      ray_version: "2.60.0",
      started_ms: this.started,
      nodes,
      resources_total: total((node) => node.resources_total),
      resources_available: total((node) => node.resources_available),
      store_used: nodes.reduce((n, node) => n + node.store_used, 0),
      store_size: nodes.reduce((n, node) => n + node.store_size, 0),
      tasks,
      actors: { ALIVE: 4, DEAD: 1, RESTARTING: 1 },
      jobs: { RUNNING: 1, SUCCEEDED: 1, FAILED: 1 },
      placement_groups: { CREATED: 1, PENDING: 1, REMOVED: 1 },
      waiting: [],
      missing: [],
    };
  }
}

function traceback(row) {
  return [
    `\x1b[36mray::${row.name}()\x1b[39m (pid=${row.worker_pid}, ip=10.0.0.1)`,
    '  File "train.py", line 88, in evaluate',
    "    loss = criterion(model(batch), target)",
    '  File "train.py", line 41, in criterion',
    '    raise ValueError(f"expected {n} classes, got {len(scores)}")',
    "\x1b[31mValueError: expected 10 classes, got 9\x1b[39m",
  ].join("\n");
}

function addUp(objects) {
  const total = {};
  for (const object of objects) {
    for (const [key, value] of Object.entries(object)) total[key] = (total[key] ?? 0) + value;
  }
  return total;
}

function sum(object) {
  return Object.values(object).reduce((a, b) => a + b, 0);
}
