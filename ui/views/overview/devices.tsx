// Accelerators: how busy they were and what they ran.

import type { DeviceRow, KernelRow, Report } from "../../model/report";
import { duration, number, share, size, visible } from "../../model/units";
import { Bar, Card } from "../widgets";

const HEADS = ["Device", "Kernels", "Time", "Copies", "Bytes", "Busy", "Idle", "Hidden communication"];

export function DeviceCards({ report }: { report: Report }) {
  const { gpu } = report;
  if (!gpu) return null;
  const busy = (device: DeviceRow) => (device.busy ? share(device.busy.busy_ns, report.meta.wall_ns) : "n/a");
  const idle = (device: DeviceRow) =>
    device.busy ? duration(device.busy.idle_ns) : device.idle_ns ? duration(device.idle_ns) : "n/a";
  const most = Math.max(...gpu.kernels.map((row) => row.gpu_time_ns.sum), 1);
  const kind = (row: KernelRow) => (["copy", "collective"].includes(row.kind) ? row.kind : "kernel");
  return (
    <>
      <Card title="Devices" note={gpu.sync_ns ? `threads waited ${duration(gpu.sync_ns)} for them` : ""}>
        <div class="scroll">
          <table class="data compact">
            <thead>
              <tr>
                {HEADS.map((head, i) => (
                  <th scope="col" class={i ? "" : "text"}>
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {gpu.devices.map((device) => (
                <tr>
                  <th scope="row" class="text">
                    {visible(device.name)}
                  </th>
                  <td>{number(device.launches)}</td>
                  <td>{duration(device.kernels_ns)}</td>
                  <td>{duration(device.copies_ns)}</td>
                  <td>{size(device.copy_bytes)}</td>
                  <td>{busy(device)}</td>
                  <td>{idle(device)}</td>
                  <td>
                    {device.busy ? share(device.busy.communication_hidden_ns, device.busy.communication_ns) : "n/a"}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Card>
      <Card title="On the device" note={`${duration(gpu.work_ns)} in all`}>
        <div class="scroll">
          <table class="data compact">
            <tbody>
              {gpu.kernels.slice(0, 12).map((row) => (
                <tr>
                  <td class="text">
                    <code>{visible(row.name)}</code>
                  </td>
                  <td>
                    <Bar parts={[[row.gpu_time_ns.sum / most, kind(row)]]} />
                  </td>
                  <td>{share(row.gpu_time_ns.sum, gpu.work_ns)}</td>
                  <td>{duration(row.gpu_time_ns.sum)}</td>
                  <td class="quiet">{number(row.count)} ×</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Card>
    </>
  );
}
