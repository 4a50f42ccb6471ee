// The cluster's figures over the last minutes.
import { bytes, shortCount } from "../format";
import { samples } from "../live";
import type { Cluster } from "../rows";
import { rates } from "../samples";
import { useStore } from "../store";
import { sum } from "../sums";
import { Chart } from "./chart";

/** Round numbers of bytes are powers of two. */
const BYTE_STEPS = Array.from({ length: 45 }, (_, i) => 2 ** i);

/** At first the charts have room for this. */
const LEAST_SECONDS = 60;

export function ClusterCharts({ now }: { now: Cluster }) {
  const kept = useStore(samples);
  const times = kept.map((sample) => sample.time);
  const memory = sum(now.nodes.map((node) => node.memory_total)) ?? 1;
  return (
    <div class="charts">
      <Chart
        title="Tasks per second"
        times={times}
        lines={[{ label: "ended", colour: "--accent", values: rates(kept) }]}
        format={shortCount}
        atLeast={5}
        span={LEAST_SECONDS}
      />
      <Chart
        title="Tasks now"
        times={times}
        lines={[
          { label: "running", colour: "--running", values: kept.map((sample) => sample.running) },
          { label: "waiting", colour: "--pending", values: kept.map((sample) => sample.pending) },
        ]}
        format={shortCount}
        atLeast={5}
        span={LEAST_SECONDS}
      />
      <Chart
        title="CPU of the machines"
        times={times}
        lines={[{ label: "CPU", colour: "--accent", values: kept.map((sample) => sample.cpu) }]}
        format={(value) => `${Math.round(value)} %`}
        atLeast={100}
        span={LEAST_SECONDS}
      />
      <Chart
        title="Memory"
        times={times}
        lines={[
          { label: "machines", colour: "--accent", values: kept.map((sample) => sample.memory) },
          { label: "store", colour: "--done", values: kept.map((sample) => sample.store) },
        ]}
        format={bytes}
        atLeast={memory}
        steps={BYTE_STEPS}
        span={LEAST_SECONDS}
      />
    </div>
  );
}
