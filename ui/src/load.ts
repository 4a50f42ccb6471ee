// Loading for components: something of the server, again whenever the stream tells of a change,
// with what was there before shown until the new is here.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, isAbort } from "./api";
import { changes } from "./live";

export interface Loaded<T> {
  data: T | null;
  error: string | null;
  loading: boolean;
  reload: () => void;
}

/** However much changes, a list is not loaded more often than this. */
const LEAST_MS = 1500;

export interface LoadOptions {
  /** Whether to load again with every change; else only once. */
  live?: boolean;
}

/** Loads `path` of the API; null loads nothing. */
export function useLoad<T>(path: string | null, { live = true }: LoadOptions = {}): Loaded<T> {
  const [state, setState] = useState<{ path: string | null; data: T | null; error: string | null }>(
    { path: null, data: null, error: null },
  );
  const [loading, setLoading] = useState(path !== null);
  const again = useRef<() => void>(() => {});

  useEffect(() => {
    if (path === null) return;
    const ended = new AbortController();
    let busy = false;
    let wanted = false;
    let started = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;

    const load = async () => {
      if (busy) {
        wanted = true;
        return;
      }
      busy = true;
      wanted = false;
      started = Date.now();
      setLoading(true);
      try {
        const data = await get<T>(path, ended.signal);
        setState({ path, data, error: null });
      } catch (failure) {
        if (ended.signal.aborted || isAbort(failure)) return;
        const error = failure instanceof Error ? failure.message : String(failure);
        setState((before) => ({
          path,
          data: sameList(before.path, path) ? before.data : null,
          error,
        }));
      }
      busy = false;
      setLoading(false);
      if (wanted) soon();
    };
    const soon = () => {
      clearTimeout(timer);
      timer = setTimeout(load, Math.max(0, started + LEAST_MS - Date.now()));
    };

    again.current = () => void load();
    void load();
    const unfollow = live ? changes.subscribe(soon) : () => {};
    return () => {
      ended.abort();
      clearTimeout(timer);
      unfollow();
    };
  }, [path, live]);

  const current = sameList(state.path, path);
  return {
    data: current ? state.data : null,
    error: state.path === path ? state.error : null,
    loading,
    reload: () => again.current(),
  };
}

/** Another page or filter of the same list: its old rows are better than an empty table. */
function sameList(one: string | null, other: string | null): boolean {
  return one !== null && other !== null && one.split("?")[0] === other.split("?")[0];
}
