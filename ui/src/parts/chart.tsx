// A line chart over time, by uPlot. Colours come from the style sheet, so they follow the theme.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useStore } from "../store";
import { theme } from "../theme";

export interface Line {
  label: string;
  /** The name of a colour of the style sheet, such as `--accent`. */
  colour: string;
  values: (number | null)[];
}

interface ChartProps {
  title: string;
  times: number[];
  lines: Line[];
  format: (value: number) => string;
  /** The scale reaches at least this far up, so that noise does not look like a mountain. */
  atLeast: number;
  /** Where lines may be; else round decimal numbers. */
  steps?: number[];
  /** How many seconds the chart shows at least. */
  span: number;
}

const HEIGHT = 140;

export function Chart(props: ChartProps) {
  const { title, times, lines, format } = props;
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const shown = useStore(theme);
  const names = lines.map((line) => line.label + line.colour).join();

  useEffect(() => {
    const element = frame.current!;
    const made = new uPlot(options(element, props), [[], ...lines.map(() => [])], element);
    plot.current = made;
    const resized = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
    };
    // The chart is made anew only if its lines or the theme change; data are set below.
  }, [names, shown]);

  useEffect(() => {
    plot.current?.setData([times, ...lines.map((line) => line.values)]);
  }, [times, names, shown]);

  const latest = lines.map((line) => {
    const value = line.values.at(-1);
    return `${line.label} ${value == null ? "unknown" : format(value)}`;
  });
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong>
        <span class="chart-now">
          {lines.map((line) => {
            const value = line.values.at(-1);
            return (
              <span key={line.label}>
                <i style={{ background: `var(${line.colour})` }} />
                {lines.length > 1 && `${line.label} `}
                <b>{value == null ? "–" : format(value)}</b>
              </span>
            );
          })}
        </span>
      </figcaption>
      <div ref={frame} role="img" aria-label={`${title}, now: ${latest.join(", ")}`} />
    </figure>
  );
}

function options(
  element: HTMLElement,
  { lines, format, atLeast, steps, span }: ChartProps,
): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const font = `11px ${style.fontFamily}`;
  const axis = {
    stroke: colour("--faint"),
    font,
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth || 300,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    padding: [8, 26, 0, 0],
    scales: {
      // Before the first sample there is no time to begin at but now.
      x: {
        time: true,
        range: (_, min, max) => {
          const end = max ?? Date.now() / 1000;
          return [Math.min(min ?? end, end - span), end];
        },
      },
      y: { range: (_, __, max) => [0, Math.max(atLeast, (max ?? 0) * 1.1)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 24,
        space: 70,
        values: (_, ticks) => ticks.map(clockTick),
      },
      {
        ...axis,
        size: 58,
        space: 36,
        values: (_, ticks) => ticks.map(format),
        ...(steps && { incrs: steps }),
      },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.label,
        stroke: colour(line.colour),
        fill: lines.length === 1 ? `${colour(line.colour)}22` : undefined,
        width: 1.75,
        points: { show: false },
      })),
    ] as uPlot.Series[],
  };
}

function clockTick(seconds: number): string {
  const date = new Date(seconds * 1000);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
