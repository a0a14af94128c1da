// What hardware counters said of the kernels below the selected frame: shares of what the device can do, in the time that was
// counted. Written in NVIDIA's words, and said in those of the devices' maker.

import { inMakersWords, lanesOf } from "../../model/makers";
import { duration, number, share } from "../../model/units";
import type { TreeView, ViewNode } from "../../model/view";

const SHARES: [metric: string, label: string, doc: string][] = [
  ["occupied_time", "occupancy", "room for warps that was taken on multiprocessors at work"],
  ["active_time", "multiprocessors at work", "as the mean over all of them"],
  ["issue_time", "issue slots", "that issued an instruction"],
  ["tensor_time", "matrix units", "at work"],
  ["dram_time", "device memory", "of the rate that it can reach"],
  ["l2_time", "L2 cache", "of the rate that it can reach"],
];

export function Hardware({ view, node }: { view: TreeView; node: ViewNode }) {
  const counted = node.parent ? view.valueOf(node, "counted_time") : 0;
  if (!(counted > 0)) return null;
  const bytes = view.valueOf(node, "dram_bytes");
  const turns = view.valueOf(node, "shared_wavefronts");
  const loads = view.valueOf(node, "global_requests");
  const say = (text: string) => inMakersWords(view.profile, text);
  const lanes = lanesOf(view.profile);
  return (
    <>
      <h4>Hardware counters of {duration(counted)}</h4>
      <table class="costs">
        <tbody>
          {SHARES.map(([metric, label, doc]) => {
            const value = view.valueOf(node, metric);
            return value > 0 ? (
              <tr>
                <th scope="row" title={say(doc)}>
                  {say(label)}
                </th>
                <td>{share(value, counted)}</td>
              </tr>
            ) : null;
          })}
          {turns > 0 ? (
            <tr>
              <th scope="row" title={say("of the passes that shared memory took")}>
                bank conflicts
              </th>
              <td>{share(view.valueOf(node, "bank_conflicts"), turns)}</td>
            </tr>
          ) : null}
          {loads > 0 ? (
            <tr>
              <th
                scope="row"
                title={
                  lanes
                    ? `of 32 bytes that a load of ${lanes} threads touched; ${lanes / 8} where neighbours read 4 bytes each`
                    : say("of 32 bytes that a load of a warp touched")
                }
              >
                pieces of a load
              </th>
              <td>{(view.valueOf(node, "global_sectors") / loads).toFixed(1)}</td>
            </tr>
          ) : null}
          {bytes > 0 ? (
            <tr>
              <th scope="row" title="read from and written to device memory">
                memory traffic
              </th>
              <td>{number(Math.round(bytes / counted))} GB/s</td>
            </tr>
          ) : null}
        </tbody>
      </table>
    </>
  );
}
