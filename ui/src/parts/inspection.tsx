// A look inside a process, in a dialog. The flame graph is a picture from the server; it is shown as
// an image, so that no script in it runs.
import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort, post } from "../api";
import type { Worker } from "../rows";
import { AnsiText } from "./ansi-text";
import { Icon } from "./icons";
import { Failure } from "./notice";

export interface Look {
  worker: Worker;
  kind: "stack" | "profile";
}

const SECONDS = 5;

export function Inspection({ look, close }: { look: Look; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState<string | null>(null);
  const [picture, setPicture] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [tries, setTries] = useState(0);
  const { worker, kind } = look;

  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    const ended = new AbortController();
    const path = `workers/${encodeURIComponent(worker.worker_id ?? "")}/`;
    let made: string | null = null;
    setError(null);
    const ask =
      kind === "stack"
        ? post<{ text: string }>(`${path}stack`, ended.signal).then((answer) =>
            setText(answer.text),
          )
        : post<{ svg: string }>(`${path}profile?seconds=${SECONDS}`, ended.signal).then(
            (answer) => {
              made = URL.createObjectURL(new Blob([answer.svg], { type: "image/svg+xml" }));
              setPicture(made);
            },
          );
    ask.catch((failure: Error) => {
      if (!isAbort(failure)) setError(failure.message);
    });
    return () => {
      ended.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [tries]);

  const title = kind === "stack" ? "Stack" : "Flame graph";
  return (
    <dialog ref={dialog} onClose={close} aria-label={`${title} of process ${worker.pid}`}>
      <header>
        <h2>
          {title} of process {worker.pid}
        </h2>
        {picture && (
          <a class="button" href={picture} download={`flame-graph-${worker.pid}.svg`}>
            <Icon name="download" /> Save
          </a>
        )}
        <button
          type="button"
          class="quiet"
          aria-label="Close"
          onClick={() => dialog.current?.close()}
        >
          <Icon name="close" />
        </button>
      </header>
      {error && <Failure error={error} retry={() => setTries(tries + 1)} />}
      {!error && text === null && picture === null && (
        <p class="empty">
          {kind === "stack"
            ? "Asking the process…"
            : `Watching the process for ${SECONDS} seconds…`}
        </p>
      )}
      {text !== null && (
        <pre class="output" tabIndex={0}>
          <AnsiText text={text} />
        </pre>
      )}
      {picture && (
        <img class="flame" src={picture} alt={`Where the time of process ${worker.pid} went`} />
      )}
    </dialog>
  );
}
