// A log on the screen: only the lines that are seen are elements, so its length does not matter.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { parseLine } from "../ansi";
import { count, plural } from "../format";
import { findLines, markRuns } from "../find";
import type { LogLine } from "../log-buffer";
import { useLog } from "../log-stream";
import { AnsiRuns } from "./ansi-text";
import { Icon } from "./icons";
import { Failure } from "./notice";
import { SearchBox } from "./search-box";

/** The same as in the style sheet. */
const LINE_HEIGHT = 20;
/** Lines above and below what is seen, so that scrolling shows no gaps. */
const MARGIN = 20;

export function LogView({ node, file }: { node: string; file: string }) {
  const log = useLog(node, file);
  const frame = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [following, setFollowing] = useState(true);
  const [wanted, setWanted] = useState("");
  const [place, setPlace] = useState(0);
  const found = useMemo(() => findLines(log.lines, wanted), [log.version, wanted]);

  useEffect(() => {
    const element = frame.current!;
    const resized = new ResizeObserver(() => setHeight(element.clientHeight));
    resized.observe(element);
    return () => resized.disconnect();
  }, []);

  useLayoutEffect(() => {
    if (following) frame.current!.scrollTop = log.lines.length * LINE_HEIGHT;
  }, [log.version, following, height]);

  const show = (index: number) => {
    setFollowing(false);
    frame.current!.scrollTop = (index + 0.5) * LINE_HEIGHT - height / 2;
  };
  const step = (by: number) => {
    if (!found.length) return;
    const next = (place + by + found.length) % found.length;
    setPlace(next);
    show(found[next]!);
  };
  const search = (text: string) => {
    setWanted(text);
    // The last one is the nearest to where a log is read.
    const places = findLines(log.lines, text);
    setPlace(Math.max(0, places.length - 1));
    if (places.length) show(places.at(-1)!);
  };
  const scrolled = () => {
    const element = frame.current!;
    setTop(element.scrollTop);
    const atEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - LINE_HEIGHT;
    setFollowing(atEnd);
  };
  const earlier = async () => {
    setFollowing(false);
    const added = await log.loadEarlier();
    // What was seen stays where it was.
    requestAnimationFrame(() => {
      if (frame.current) frame.current.scrollTop += added * LINE_HEIGHT;
    });
  };

  const first = Math.max(0, Math.floor(top / LINE_HEIGHT) - MARGIN);
  const last = Math.min(log.lines.length, Math.ceil((top + height) / LINE_HEIGHT) + MARGIN);
  return (
    <>
      <div class="toolbar">
        <SearchBox
          label="Find in this log"
          placeholder="Find in this log"
          value={wanted}
          onValue={search}
          onEnter={(backwards) => step(backwards ? 1 : -1)}
        />
        {wanted && (
          <span class="finds" aria-live="polite">
            {found.length
              ? `${count(Math.min(place + 1, found.length))} of ${count(found.length)}`
              : "Not found"}
            <button type="button" class="quiet" aria-label="Find earlier" onClick={() => step(-1)}>
              <Icon name="up" />
            </button>
            <button type="button" class="quiet" aria-label="Find later" onClick={() => step(1)}>
              <Icon name="down" />
            </button>
          </span>
        )}
        {log.earlier && (
          <button type="button" onClick={() => void earlier()}>
            Load earlier lines
          </button>
        )}
        <button type="button" aria-pressed={following} onClick={() => setFollowing(!following)}>
          {following ? "Following" : "Follow"}
        </button>
        <span class="found">{plural(log.lines.length, "line")}</span>
      </div>
      {log.error && <Failure error={log.error} />}
      <div ref={frame} class="log" role="log" aria-label={file} tabIndex={0} onScroll={scrolled}>
        <div class="log-lines" style={{ height: `${log.lines.length * LINE_HEIGHT}px` }}>
          <div style={{ transform: `translateY(${first * LINE_HEIGHT}px)` }}>
            {log.lines.slice(first, last).map((line, i) => (
              <Line
                key={first + i}
                line={line}
                wanted={wanted}
                current={found[place] === first + i}
              />
            ))}
          </div>
        </div>
        {log.version > 0 && log.lines.length === 0 && (
          <p class="empty">Nothing has been written here yet.</p>
        )}
      </div>
    </>
  );
}

function Line({ line, wanted, current }: { line: LogLine; wanted: string; current: boolean }) {
  const { runs } = parseLine(line.text, line.style);
  const className = current ? "log-line current" : "log-line";
  if (!wanted) {
    return (
      <div class={className}>
        <AnsiRuns runs={runs} />
      </div>
    );
  }
  return (
    <div class={className}>
      {markRuns(runs, wanted).map((run, i) =>
        run.marked ? <mark key={i}>{run.text}</mark> : <AnsiRuns key={i} runs={[run]} />,
      )}
    </div>
  );
}
