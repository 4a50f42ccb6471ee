// All of time as a thin strip, with a window on what is seen; it can be dragged.
import { useEffect, useRef } from "preact/hooks";
import { duration } from "../format";
import { useStore } from "../store";
import { theme } from "../theme";
import { pan, spanOf, toMoment, toX } from "./geometry";
import type { TimelineModel } from "./model";
import { paletteOf } from "./palette";
import { density } from "./spans";

/** A window narrower than this could not be seen. */
const NARROWEST_PX = 4;

export function Minimap({ model }: { model: TimelineModel }) {
  const canvas = useRef<HTMLCanvasElement>(null);

  useEffect(() => {
    const element = canvas.current!;
    const context = element.getContext("2d", { alpha: false })!;
    let palette = paletteOf(element);
    let filled: Float32Array = new Float32Array();
    let frame = 0;

    const measure = () => {
      const data = model.overview.get();
      const columns = Math.max(1, Math.floor(element.clientWidth / 2));
      filled = data
        ? density(data, model.limits.from, model.limits.to, columns)
        : new Float32Array();
      soon();
    };
    const paint = () => {
      frame = 0;
      const { clientWidth: width, clientHeight: height } = element;
      const ratio = devicePixelRatio || 1;
      if (
        element.width !== Math.round(width * ratio) ||
        element.height !== Math.round(height * ratio)
      ) {
        element.width = Math.round(width * ratio);
        element.height = Math.round(height * ratio);
      }
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.fillStyle = palette.heading;
      context.fillRect(0, 0, width, height);
      const from = toX(model.view.get().from, model.limits, width);
      const to = Math.max(from + NARROWEST_PX, toX(model.view.get().to, model.limits, width));
      context.fillStyle = palette.ground;
      context.fillRect(from, 0, to - from, height);
      context.fillStyle = palette.accent;
      const wide = width / filled.length;
      filled.forEach((share, i) => {
        const inside = (i + 1) * wide >= from && i * wide <= to;
        context.globalAlpha = inside ? 0.75 : 0.3;
        const tall = share > 0 ? Math.max(1, share * (height - 8)) : 0;
        context.fillRect(i * wide, height - tall, wide - 0.5, tall);
      });
      context.globalAlpha = 1;
      if (to - from > width * 0.995) return;
      context.fillStyle = palette.accent;
      context.fillRect(from, 0, 1.5, height);
      context.fillRect(to - 1.5, 0, 1.5, height);
    };
    const soon = () => {
      frame ||= requestAnimationFrame(paint);
    };
    /** Puts the middle of the window where the pointer is, unless it is already inside. */
    const point = (event: PointerEvent, jump: boolean) => {
      const { limits, view } = model;
      const width = element.clientWidth;
      if (jump) {
        const at = toMoment(event.offsetX, limits, width);
        if (at >= view.get().from && at <= view.get().to) return;
        const half = spanOf(view.get()) / 2;
        model.glideTo({ from: at - half, to: at + half });
      } else {
        model.move(pan(view.get(), (event.movementX / width) * spanOf(limits), limits));
      }
    };
    const down = (event: PointerEvent) => {
      element.setPointerCapture(event.pointerId);
      point(event, true);
    };
    const move = (event: PointerEvent) => {
      if (element.hasPointerCapture(event.pointerId) && event.buttons) point(event, false);
    };

    element.addEventListener("pointerdown", down);
    element.addEventListener("pointermove", move);
    const resized = new ResizeObserver(measure);
    resized.observe(element);
    const undo = [
      model.overview.subscribe(measure),
      model.view.subscribe(soon),
      theme.subscribe(() => {
        palette = paletteOf(element);
        soon();
      }),
    ];
    measure();
    return () => {
      cancelAnimationFrame(frame);
      resized.disconnect();
      for (const step of undo) step();
    };
  }, [model]);

  const all = useStore(model.overview);
  return (
    <div class="minimap">
      <span class="sub" title="From the first task to now">
        {all && duration(all.to - all.from)}
      </span>
      <canvas ref={canvas} aria-hidden="true" />
    </div>
  );
}
