// An id: its beginning, with the whole of it to copy, and a link if there is a page for it.
import { useState } from "preact/hooks";
import { shortId } from "../format";
import { Icon } from "./icons";

export function Id({ id, href, copy }: { id: string; href?: string; copy?: boolean }) {
  const text = (
    <code class="id" title={id}>
      {shortId(id)}
    </code>
  );
  return (
    <>
      {href ? <a href={href}>{text}</a> : text}
      {copy && <Copy text={id} what="the id" />}
    </>
  );
}

export function Copy({ text, what }: { text: string; what: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  // Without HTTPS only loopback has a clipboard.
  if (!navigator.clipboard) return null;
  return (
    <button
      type="button"
      class="quiet copy"
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={() => void copy()}
    >
      {done ? "Copied" : <Icon name="copy" />}
    </button>
  );
}
