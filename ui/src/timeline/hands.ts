// What hands do with the timeline's canvas: wheel and pinch zoom, dragging pans, a click selects. A
// frame is painted only after something changed.
import { ColourBook } from "../colour";
import type { Span } from "../rows";
import { theme } from "../theme";
import { pan, spanOf, toMoment, zoom } from "./geometry";
import { laneAt, laneOf, type Lane } from "./lanes";
import type { TimelineModel } from "./model";
import { AXIS_HEIGHT, paint } from "./paint";
import { paletteOf, type Palette } from "./palette";
import { spanAt } from "./spans";

/** What the pointer is on, and where on the canvas that is. */
export interface Hover {
  lane: Lane;
  span: Span;
  name: string;
  x: number;
  y: number;
}

/** A press that moves less is a click. */
const CLICK_PX = 4;
/** A span this near to the pointer is meant. */
const NEAR_PX = 3;
const ZOOM_PER_PIXEL = 0.0022;

/** For all timelines of this page, so that a name keeps its colour. */
const colours = new ColourBook();

/** Listens to one canvas and paints it. */
export class Hands {
  private readonly context: CanvasRenderingContext2D;
  private palette: Palette;
  private width = 0;
  private height = 0;
  private gutter = 0;
  private scroll = 0;
  private frame = 0;
  private hover: Hover | null = null;
  /** Where the mouse is while it presses nothing. */
  private mouse: { x: number; y: number } | null = null;
  /** Fingers (or the mouse) that press, by pointer. */
  private readonly pressed = new Map<number, { x: number; y: number }>();
  private moved = 0;
  private readonly undo: (() => void)[] = [];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly model: TimelineModel,
    private readonly onHover: (hover: Hover | null) => void,
  ) {
    // Opaque: the browser need not blend it with what is behind.
    this.context = canvas.getContext("2d", { alpha: false })!;
    this.palette = paletteOf(canvas);
    const repaint = () => this.paintSoon();
    for (const followed of [model.view, model.overview, model.detail, model.matches, model.rows]) {
      this.undo.push(
        followed.subscribe(() => {
          this.lookAgain();
          repaint();
        }),
      );
    }
    this.undo.push(
      model.selection.subscribe(() => {
        this.bringIntoView();
        repaint();
      }),
      theme.subscribe(() => {
        this.palette = paletteOf(canvas);
        repaint();
      }),
    );
    const resized = new ResizeObserver(() => this.resize());
    resized.observe(canvas);
    this.undo.push(() => resized.disconnect());
    this.listen();
    this.resize();
  }

  end(): void {
    cancelAnimationFrame(this.frame);
    for (const step of this.undo) step();
  }

  private listen(): void {
    const on = <K extends keyof HTMLElementEventMap>(
      type: K,
      handle: (event: HTMLElementEventMap[K]) => void,
      options?: AddEventListenerOptions,
    ) => {
      this.canvas.addEventListener(type, handle, options);
      this.undo.push(() => this.canvas.removeEventListener(type, handle, options));
    };
    on("wheel", (event) => this.wheel(event), { passive: false });
    on("pointerdown", (event) => this.press(event));
    on("pointermove", (event) => this.point(event));
    on("pointerup", (event) => this.release(event, true));
    on("pointercancel", (event) => this.release(event, false));
    on("pointerleave", () => {
      this.mouse = null;
      this.show(null);
    });
    on("dblclick", (event) => this.zoomAt(event.offsetX, 0.25, true));
    on("keydown", (event) => {
      if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        this.scrollBy(event.key === "ArrowUp" ? -72 : 72);
        event.preventDefault();
      }
    });
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const { model } = this;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = (event.deltaX || event.deltaY) * unit;
      model.move(pan(model.view.get(), this.timeOf(by), model.limits));
    } else if (event.altKey) {
      this.scrollBy(event.deltaY * unit);
    } else {
      // A pinch on a touchpad arrives as a wheel with the control key and small steps.
      const strength = event.ctrlKey ? 4 : 1;
      this.zoomAt(event.offsetX, Math.exp(event.deltaY * unit * ZOOM_PER_PIXEL * strength), false);
    }
  }

  private zoomAt(x: number, factor: number, glide: boolean): void {
    const { model } = this;
    const at = toMoment(Math.max(0, x - this.gutter), model.view.get(), model.width);
    const view = zoom(model.view.get(), factor, at, model.limits);
    if (glide) model.glideTo(view);
    else model.move(view);
  }

  private press(event: PointerEvent): void {
    this.canvas.setPointerCapture(event.pointerId);
    this.mouse = null;
    this.pressed.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (this.pressed.size === 1) this.moved = 0;
  }

  private point(event: PointerEvent): void {
    const before = this.pressed.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "mouse") return;
      this.mouse = { x: event.offsetX, y: event.offsetY };
      this.lookAgain();
      return;
    }
    const now = { x: event.offsetX, y: event.offsetY };
    const dx = now.x - before.x;
    const dy = now.y - before.y;
    this.moved += Math.abs(dx) + Math.abs(dy);
    const other = [...this.pressed].find(([id]) => id !== event.pointerId)?.[1];
    this.pressed.set(event.pointerId, now);
    if (this.moved < CLICK_PX) return;
    this.show(null);
    const { model } = this;
    if (other) {
      const apart = Math.max(16, Math.abs(now.x - other.x));
      const was = Math.max(16, Math.abs(before.x - other.x));
      this.zoomAt((now.x + other.x) / 2, was / apart, false);
    }
    model.move(pan(model.view.get(), -this.timeOf(other ? dx / 2 : dx), model.limits));
    this.scrollBy(-dy);
  }

  private release(event: PointerEvent, clicks: boolean): void {
    const was = this.pressed.delete(event.pointerId);
    if (was && clicks && this.moved < CLICK_PX && !this.pressed.size) this.click(event);
  }

  private click(event: PointerEvent): void {
    const found = this.under(event.offsetX, event.offsetY);
    if (!found) void this.model.select(null);
    else if (found.span[5]) void this.model.select(found.span[5]);
    else {
      const [start, took] = found.span;
      const room = took * 0.5;
      this.model.glideTo({ from: start - room, to: start + took + room });
    }
  }

  /** The span under a point of the canvas. */
  private under(x: number, y: number): Hover | null {
    const { model } = this;
    if (x < this.gutter || y < AXIS_HEIGHT) return null;
    const lane = laneAt(model.rows.get().lanes, y - AXIS_HEIGHT + this.scroll);
    if (!lane?.key) return null;
    const moment = toMoment(x - this.gutter, model.view.get(), model.width);
    for (const data of [model.matches.get(), model.detail.get(), model.overview.get()]) {
      const row = data?.rows.get(lane.key);
      if (!data || !row || moment < data.from || moment > data.to) continue;
      const span = spanAt(row, moment, this.timeOf(NEAR_PX));
      if (span) return { lane, span, name: data.names[span[2]] ?? "", x, y };
      if (data !== model.matches.get()) return null;
    }
    return null;
  }

  /** What is under the mouse may be another when the view moves and the mouse does not. */
  private lookAgain(): void {
    if (this.mouse) this.show(this.under(this.mouse.x, this.mouse.y));
  }

  private show(hover: Hover | null): void {
    if (hover === null && this.hover === null) return;
    this.hover = hover;
    this.canvas.style.cursor = hover ? "pointer" : "";
    this.onHover(hover);
    this.paintSoon();
  }

  private timeOf(pixels: number): number {
    return (pixels / this.model.width) * spanOf(this.model.view.get());
  }

  private scrollBy(by: number): void {
    const most = Math.max(0, this.model.rows.get().height - (this.height - AXIS_HEIGHT));
    this.scroll = Math.min(most, Math.max(0, this.scroll + by));
    this.paintSoon();
  }

  /** Scrolls so that the selected task's lane is seen. */
  private bringIntoView(): void {
    const task = this.model.selection.get()?.task;
    const data = [this.model.detail.get(), this.model.overview.get()];
    const lane = task && laneOf(this.model.rows.get(), task, data);
    if (!lane) return;
    const room = this.height - AXIS_HEIGHT;
    if (lane.top < this.scroll) this.scroll = lane.top;
    else if (lane.top + lane.height > this.scroll + room) {
      this.scroll = Math.max(0, lane.top - room / 2);
    }
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = devicePixelRatio || 1;
    this.width = clientWidth;
    this.height = clientHeight;
    this.gutter = parseFloat(getComputedStyle(this.canvas).getPropertyValue("--gutter"));
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.model.setWidth(Math.max(1, this.width - this.gutter));
    this.scrollBy(0);
    this.paintSoon();
  }

  private paintSoon(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paintNow();
    });
  }

  private paintNow(): void {
    const { model } = this;
    if (!this.width || !this.height) return;
    paint(this.context, {
      width: this.width,
      height: this.height,
      gutter: this.gutter,
      view: model.view.get(),
      zero: model.zero,
      scroll: this.scroll,
      layout: model.rows.get(),
      overview: model.overview.get(),
      detail: model.detail.get(),
      matches: model.matches.get(),
      selection: model.selection.get(),
      hover: this.hover,
      palette: this.palette,
      colour: (name) => colours.colour(name, this.palette.theme),
    });
  }
}
