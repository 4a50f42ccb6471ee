// One task: what went wrong, or why it waits; where its time went; what it needs and feeds; its output.
import type { ComponentChildren } from "preact";
import { plainText } from "../ansi";
import { clock, count, duration, words } from "../format";
import { useLoad } from "../load";
import { AnsiText } from "../parts/ansi-text";
import { Card } from "../parts/card";
import { EndButton } from "../parts/end-button";
import { Facts } from "../parts/facts";
import { Copy, Id } from "../parts/id";
import { Empty, Failure } from "../parts/notice";
import { State } from "../parts/state";
import { phases, took } from "../phases";
import { stageOf } from "../progress";
import { link } from "../router";
import type { TaskDetail } from "../rows";

export function TaskPage({ id }: { id: string }) {
  const { data: task, error, reload } = useLoad<TaskDetail>(`tasks/${encodeURIComponent(id)}`);
  if (error) return <Failure error={error} retry={reload} />;
  if (!task) return <Empty>Loading…</Empty>;
  const stage = stageOf(task.state);
  return (
    <>
      <nav class="crumbs" aria-label="Where this is">
        <a href="#/tasks">Tasks</a>
      </nav>
      <div class="page-head">
        <h1>
          {task.name} <State state={task.state} />
        </h1>
        <p class="sub">
          <Id id={task.task_id} copy /> {words(task.type)}
          {task.attempt_number > 0 && `, attempt ${task.attempt_number}`}
        </p>
        {task.start_time_ms !== null && (
          <a class="button aside" href={link(["timeline"], { task: task.task_id })}>
            Show in the timeline
          </a>
        )}
        {(stage === "running" || stage === "pending") && task.type !== "ACTOR_CREATION_TASK" && (
          <EndButton
            path={`tasks/${encodeURIComponent(task.task_id)}/cancel`}
            label="Cancel"
            question="Cancel this task and all that it has submitted?"
            done={reload}
          />
        )}
      </div>
      {stage === "failed" && <FailureOf task={task} />}
      {stage === "pending" && <Why task={task} />}
      <Phases task={task} />
      <div class="columns">
        <Card title="Facts">
          <TaskFacts task={task} />
        </Card>
        <Relatives task={task} />
      </div>
      <Attempts task={task} />
      <Output task={task} />
    </>
  );
}

function FailureOf({ task }: { task: TaskDetail }) {
  const text = task.error_message;
  return (
    <Card
      title={headline(task)}
      tone="failed"
      aside={text ? <Copy text={text} what="the traceback" /> : null}
    >
      {text ? (
        <pre class="traceback" tabIndex={0} aria-label="Traceback">
          <AnsiText text={text} />
        </pre>
      ) : (
        <p>It is not recorded why.</p>
      )}
    </Card>
  );
}

/** Tracebacks end with what went wrong. */
function headline(failed: Pick<TaskDetail, "error_message" | "error_type">): string {
  const last = plainText(failed.error_message?.trimEnd().split("\n").at(-1) ?? "");
  return last && last.length < 160 ? last : words(failed.error_type ?? "It failed");
}

function Why({ task }: { task: TaskDetail }) {
  const asked = useLoad<{ text: string }>(`tasks/${encodeURIComponent(task.task_id)}/why`);
  const text = asked.data?.text ?? task.why;
  return (
    <Card title="Why it waits" tone="pending">
      <p class="why">{text ?? asked.error ?? "Asking…"}</p>
    </Card>
  );
}

/** Waiting of each kind, and then the parts of running, as one bar. */
function Phases({ task }: { task: TaskDetail }) {
  const parts = phases(task);
  const total = parts.reduce((sum, part) => sum + part.ms, 0);
  if (!total) return null;
  const of = task.attempt_number > 0 ? `in attempt ${task.attempt_number}` : "in all";
  return (
    <Card
      title="Where the time went"
      aside={
        <span class="sub">
          {duration(total)} {of}
        </span>
      }
    >
      <div class="progress tall" aria-hidden="true">
        {parts.map((part) => (
          <span key={part.name} class={`tone-${part.tone}`} style={{ flexGrow: part.ms / total }} />
        ))}
      </div>
      <ul class="legend">
        {parts.map((part) => (
          <li key={part.name}>
            <span class={`dot tone-${part.tone}`} />
            {part.name} <b>{duration(part.ms)}</b>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** Tries, if there was more than one. */
function Attempts({ task }: { task: TaskDetail }) {
  if ((task.attempts?.length ?? 0) < 2) return null;
  return (
    <Card title="Attempts">
      <ol class="attempts" start={task.attempts?.[0]?.attempt_number}>
        {task.attempts?.map((attempt) => (
          <li key={attempt.attempt_number}>
            <State state={attempt.state} /> in process {attempt.worker_pid ?? "–"} at{" "}
            {clock(attempt.start_time_ms)}
            {attempt.error_type && `: ${headline(attempt)}`}
          </li>
        ))}
      </ol>
    </Card>
  );
}

function TaskFacts({ task }: { task: TaskDetail }) {
  return (
    <Facts
      facts={[
        ["Function", task.func_or_class_name ?? task.name],
        ["Submitted", clock(task.creation_time_ms)],
        ["Started", clock(task.start_time_ms)],
        ["Ended", clock(task.end_time_ms)],
        ["Took", took(task, Date.now())],
        task.worker_pid !== null ? ["Process", task.worker_pid] : null,
        task.node_id ? ["Node", <Id id={task.node_id} />] : null,
        task.actor_id
          ? ["Actor", <Id id={task.actor_id} href={link(["actors", task.actor_id])} />]
          : null,
        task.parent_task_id
          ? [
              "Submitted by",
              <Id id={task.parent_task_id} href={link(["tasks", task.parent_task_id])} />,
            ]
          : null,
        task.job_id ? ["Job", task.job_id] : null,
      ]}
    />
  );
}

/** Longer lists say how many more there are. */
const MOST_RELATIVES = 20;

function Relatives({ task }: { task: TaskDetail }) {
  const list = (ids: string[], none: string): ComponentChildren =>
    ids.length ? (
      <ul class="relatives">
        {ids.slice(0, MOST_RELATIVES).map((id) => (
          <li key={id}>
            <Relative id={id} />
          </li>
        ))}
        {ids.length > MOST_RELATIVES && <li>and {count(ids.length - MOST_RELATIVES)} more</li>}
      </ul>
    ) : (
      <p class="sub">{none}</p>
    );
  return (
    <Card title="Dependencies">
      <h3>It needs results of</h3>
      {list(task.needs ?? [], "No other task.")}
      <h3>Its results go to</h3>
      {list(task.feeds ?? [], "No other task so far.")}
    </Card>
  );
}

/** Another task by its name, once that is known. */
function Relative({ id }: { id: string }) {
  const { data } = useLoad<TaskDetail>(`tasks/${encodeURIComponent(id)}`, { live: false });
  const href = link(["tasks", id]);
  if (!data) return <Id id={id} href={href} />;
  return (
    <>
      <a href={href}>{data.name}</a> <State state={data.state} />
      <small>{duration(data.duration_ms)}</small>
    </>
  );
}

function Output({ task }: { task: TaskDetail }) {
  const { data } = useLoad<{ out: Printed; err: Printed }>(
    task.start_time_ms === null ? null : `tasks/${encodeURIComponent(task.task_id)}/log`,
  );
  const info = task.task_log_info;
  const whole = (file: string | undefined, title: string) =>
    file && task.node_id ? <a href={link(["logs", task.node_id, file])}>{title}</a> : null;
  const nothing = task.start_time_ms === null ? "It has not run yet." : "Nothing.";
  return (
    <>
      <Card title="What it printed" aside={whole(info?.stdout_file, "The worker's whole log")}>
        {data?.out.text ? (
          <PrintedText printed={data.out} label="Output of the task" />
        ) : (
          <p class="sub">{nothing}</p>
        )}
      </Card>
      {data?.err.text && (
        <Card
          title="What it printed as errors"
          aside={whole(info?.stderr_file, "The worker's whole errors")}
        >
          <PrintedText printed={data.err} label="Errors of the task" />
        </Card>
      )}
    </>
  );
}

interface Printed {
  text: string;
  truncated: boolean;
}

function PrintedText({ printed, label }: { printed: Printed; label: string }) {
  return (
    <>
      <pre class="output" tabIndex={0} aria-label={label}>
        <AnsiText text={printed.text} />
      </pre>
      {printed.truncated && (
        <p class="sub">This is the end of it; all of it is in the worker's log.</p>
      )}
    </>
  );
}
