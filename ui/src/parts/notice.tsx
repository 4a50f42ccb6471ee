// What is said when there is nothing to show, or something went wrong: sentences.
import type { ComponentChildren } from "preact";

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function Failure({ error, retry }: { error: string; retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <p>{error}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
