// A titled part of a page.
import type { ComponentChildren } from "preact";

interface CardProps {
  title: string;
  /** At the right of the title: a count, a button. */
  aside?: ComponentChildren;
  tone?: "failed" | "pending";
  flush?: boolean;
  children: ComponentChildren;
}

export function Card({ title, aside, tone, flush, children }: CardProps) {
  return (
    <section
      class={`card${tone ? ` card-${tone}` : ""}${flush ? " flush" : ""}`}
      aria-label={title}
    >
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}
