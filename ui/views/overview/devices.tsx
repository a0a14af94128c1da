// Accelerators: how busy they were and what they ran.

import type { DeviceRow, KernelRow, LinkRow, Report, ScratchRow } from "../../model/report";
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
      <Links rows={gpu.links ?? []} />
      <Scratch rows={gpu.scratch ?? []} />
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

function Cells({ heads, rows }: { heads: string[]; rows: string[][] }) {
  return (
    <div class="scroll">
      <table class="data compact">
        <thead>
          <tr>
            {heads.map((head, i) => (
              <th scope="col" class={i ? "" : "text"}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([first, ...others]) => (
            <tr>
              <th scope="row" class="text">
                {first}
              </th>
              {others.map((cell) => (
                <td>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Links({ rows }: { rows: LinkRow[] }) {
  if (!rows.length) return null;
  const rate = (row: LinkRow) => (row.ns > 0 ? row.bytes / row.ns : 0);
  const cells = rows.map((row) => [
    `${row.source} → ${row.target}`,
    visible(row.link) || "-",
    number(row.copies),
    size(row.bytes),
    duration(row.ns),
    rate(row).toFixed(1),
    row.link_bytes_s ? share(rate(row) * 1e9, row.link_bytes_s) : "-",
  ]);
  return (
    <Card title="Between devices" note="copies only; kernels of collectives move their data">
      <Cells heads={["Devices", "Link", "Copies", "Bytes", "Time", "GB/s", "Of the link"]} rows={cells} />
    </Card>
  );
}

function Scratch({ rows }: { rows: ScratchRow[] }) {
  if (!rows.length) return null;
  const cells = rows.map((row) => [
    visible(row.name),
    size(row.thread_bytes),
    `${number(row.taken)} ×`,
    row.taken_bytes === null ? "-" : size(row.taken_bytes),
    `${number(row.returned)} ×`,
    duration(row.waited_ns),
  ]);
  return (
    <Card title="Scratch memory" note="memory that the driver allocated while kernels waited; not part of their time">
      <Cells heads={["Kernel", "A thread", "Taken", "Bytes", "Given back", "Waited"]} rows={cells} />
    </Card>
  );
}
