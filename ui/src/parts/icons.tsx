// The few pictures of the page, drawn with strokes of the text's colour.

const SHAPES = {
  cluster: "M4 5h16v6H4zM4 13h16v6H4zM8 8h.01M8 16h.01",
  timeline: "M4 6h9M8 12h12M4 18h7",
  tasks: "M4 6.5l1.5 1.5L8 5M4 12.5l1.5 1.5L8 11M4 18.5L5.5 20 8 17M12 6.5h8M12 12.5h8M12 18.5h8",
  actors: "M12 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM5 20c.5-4 3.3-6 7-6s6.5 2 7 6",
  groups: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
  jobs: "M4 8h16v11H4zM9 8V5h6v3M4 13h16",
  objects: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9",
  workers: "M7 7h10v10H7zM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4",
  logs: "M6 3h9l4 4v14H6zM9 11h7M9 15h7M15 3v4h4",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  light:
    "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6L7 7M17 17l1.4 1.4M5.6 18.4L7 17M17 7l1.4-1.4",
  dark: "M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  search: "M11 17a6 6 0 1 0 0-12 6 6 0 0 0 0 12zM15.5 15.5L20 20",
  back: "M14 6l-6 6 6 6",
  forward: "M10 6l6 6-6 6",
  first: "M17 6l-6 6 6 6M7 6v12",
  last: "M7 6l6 6-6 6M17 6v12",
  up: "M6 14l6-6 6 6",
  down: "M6 10l6 6 6-6",
  copy: "M9 9h10v11H9zM5 15V4h10",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
} as const;

export type IconName = keyof typeof SHAPES;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={SHAPES[name]} />
    </svg>
  );
}
