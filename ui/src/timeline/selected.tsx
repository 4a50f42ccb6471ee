// What is selected in the timeline, in a few lines.
import { clock, duration, plural } from "../format";
import { Icon } from "../parts/icons";
import { State } from "../parts/state";
import { took } from "../phases";
import { link } from "../router";
import type { Selection } from "./model";

export function Selected({ selection, close }: { selection: Selection; close: () => void }) {
  const { task } = selection;
  const parts = [
    ["fetch", task.fetch_ms],
    ["execute", task.execute_ms],
    ["store", task.store_ms],
  ].filter(([, ms]) => ms != null) as [string, number][];
  return (
    <aside class="selected card" aria-label="The selected task">
      <div>
        <strong>{task.name}</strong> <State state={task.state} />
      </div>
      <span>
        {took(task, Date.now())}
        {parts.length > 0 && (
          <small class="sub">
            {" "}
            ({parts.map(([name, ms]) => `${name} ${duration(ms)}`).join(", ")})
          </small>
        )}
      </span>
      <span class="sub">at {clock(task.start_time_ms)}</span>
      <span class="sub">
        needs {plural(task.needs?.length ?? 0, "task")}, feeds{" "}
        {plural(task.feeds?.length ?? 0, "task")}
      </span>
      <a class="button" href={link(["tasks", task.task_id])}>
        Open
      </a>
      <button type="button" class="quiet" aria-label="Select nothing" onClick={close}>
        <Icon name="close" />
      </button>
    </aside>
  );
}
