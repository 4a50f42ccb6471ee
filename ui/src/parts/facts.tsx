// Names and values, one under the other.
import type { ComponentChildren } from "preact";

export type Fact = [name: string, value: ComponentChildren] | null;

/** Facts that are null are left out. */
export function Facts({ facts }: { facts: Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
