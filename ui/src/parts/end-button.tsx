// A button that ends something for good: it asks once more, and says what came of it.
import { useState } from "preact/hooks";
import { post } from "../api";

interface Props {
  /** Where it is asked for. */
  path: string;
  /** On the button. */
  label: string;
  /** What is asked before. */
  question: string;
  done: () => void;
}

export function EndButton({ path, label, question, done }: Props) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const [said, setSaid] = useState<string | null>(null);
  const end = () => {
    setBusy(true);
    post<{ text: string }>(path)
      .then(
        ({ text }) => setSaid(text),
        (failure: Error) => setSaid(failure.message),
      )
      .finally(() => {
        setBusy(false);
        setAsking(false);
        done();
      });
  };
  if (said !== null) {
    return (
      <span class="aside" role="status">
        {said}
      </span>
    );
  }
  if (!asking) {
    return (
      <button type="button" class="aside" onClick={() => setAsking(true)}>
        {label}
      </button>
    );
  }
  return (
    <span class="aside" role="group" aria-label={question}>
      {question}{" "}
      <button type="button" class="danger" disabled={busy} onClick={end}>
        {label}
      </button>{" "}
      <button type="button" class="quiet" disabled={busy} onClick={() => setAsking(false)}>
        No
      </button>
    </span>
  );
}
