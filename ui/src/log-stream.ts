// One log for a component: the end of its file at first, then what is added, be it in the next file,
// and what is before it in the first file when somebody looks back.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, isAbort, url } from "./api";
import { LogBuffer, type LogLine } from "./log-buffer";
import type { LogPiece } from "./rows";

const PIECE = 65_536;
const RETRY_MS = 3000;
const LOST = "… lines are missing here: they were removed before they could be read …\n";

export interface FollowedLog {
  lines: readonly LogLine[];
  /** Changes with every change of the lines. */
  version: number;
  /** Whether there is more before the first line. */
  earlier: boolean;
  error: string | null;
  /** Says how many lines came in before the first. */
  loadEarlier: () => Promise<number>;
}

export function useLog(node: string, file: string): FollowedLog {
  const path = `logs/${encodeURIComponent(node)}/${encodeURIComponent(file)}`;
  const held = useRef({ buffer: new LogBuffer(), part: "", from: 0, busy: false });
  const [version, setVersion] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const changed = () => setVersion((n) => n + 1);

  useEffect(() => {
    const ended = new AbortController();
    let source: EventSource | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let next = { part: "", offset: 0 };

    const follow = () => {
      source = new EventSource(url(`${path}/stream?part=${next.part}&offset=${next.offset}`));
      source.addEventListener("text", (event: MessageEvent<string>) => {
        const piece = JSON.parse(event.data) as LogPiece;
        if (piece.is_after_loss) held.current.buffer.append(LOST);
        held.current.buffer.append(piece.text);
        if (piece.text) next = { part: piece.part, offset: piece.next };
        setError(null);
        changed();
      });
      source.addEventListener("error", () => {
        // The browser would ask again from where it began: we know better where we are.
        source?.close();
        setError("The connection to this log is lost. It is tried again.");
        timer = setTimeout(follow, RETRY_MS);
      });
      source.addEventListener("open", () => setError(null));
    };

    get<LogPiece>(`${path}?offset=${-PIECE}&most=${PIECE}`, ended.signal).then(
      (piece) => {
        const { part, offset: from } = piece;
        held.current = { buffer: new LogBuffer(), part, from, busy: false };
        held.current.buffer.append(piece.text);
        next = { part, offset: piece.next };
        changed();
        follow();
      },
      (failure: Error) => {
        if (!isAbort(failure)) setError(failure.message);
      },
    );
    return () => {
      ended.abort();
      source?.close();
      clearTimeout(timer);
    };
  }, [path]);

  const loadEarlier = async () => {
    const log = held.current;
    if (log.busy || log.from === 0) return 0;
    log.busy = true;
    const before = log.buffer.lines.length;
    const offset = Math.max(0, log.from - PIECE);
    try {
      const where = `part=${log.part}&offset=${offset}&most=${log.from - offset}`;
      const piece = await get<LogPiece>(`${path}?${where}`);
      const isKept = piece.part === log.part;
      if (isKept) log.buffer.prepend(piece.text);
      log.from = isKept ? piece.offset : 0;
    } catch (failure) {
      setError((failure as Error).message);
    }
    log.busy = false;
    changed();
    return log.buffer.lines.length - before;
  };

  const { buffer, from } = held.current;
  return { lines: buffer.lines, version, earlier: from > 0 && !buffer.dropped, error, loadEarlier };
}
