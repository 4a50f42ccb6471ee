// A value that components follow: the smallest thing that does it.
import { useEffect, useState } from "preact/hooks";

export interface Store<T> {
  get(): T;
  /** Calls `changed` after each change until the returned function is called. */
  subscribe(changed: () => void): () => void;
}

export interface Cell<T> extends Store<T> {
  set(value: T): void;
}

export function cell<T>(value: T): Cell<T> {
  const followers = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const follower of [...followers]) follower();
    },
    subscribe(changed) {
      followers.add(changed);
      return () => followers.delete(changed);
    },
  };
}

export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(() => store.get());
  useEffect(() => {
    const follow = () => setValue(() => store.get());
    follow();
    return store.subscribe(follow);
  }, [store]);
  return value;
}
