// What an allocator of device memory reserves and what of it is in use, by pool: free memory in pieces is no use to a large tensor.

import type { Allocator, Pool } from "../../model/report";
import { number, percent, share, size, visible } from "../../model/units";
import { Bar, Card } from "../widgets";

export function PoolsCard({ allocator }: { allocator: Allocator }) {
  const [whole] = allocator.pools;
  const looked = allocator.pools.some((pool) => pool.largest_free_bytes !== null);
  const counted = allocator.pools.some((pool) => pool.segments !== null);
  return (
    <Card
      title={visible(`${size(whole.reserved_bytes)} reserved on ${allocator.device}`)}
      note={visible(saidOf(whole))}
    >
      <div class="scroll">
        <table class="data pools">
          <thead>
            <tr>
              <th scope="col" class="text">
                Pool
              </th>
              <th scope="col">Reserved</th>
              <th scope="col">In use</th>
              <th scope="col">Free</th>
              {looked ? <th scope="col">Largest free block</th> : null}
              {looked ? <th scope="col">Fragmentation</th> : null}
              {counted ? <th scope="col">Segments</th> : null}
              <th scope="col">
                <span class="offscreen">Bar</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {allocator.pools.map((pool) => (
              <tr>
                <th scope="row" class="text">
                  {visible(pool.name || "all")}
                </th>
                <td>{size(pool.reserved_bytes)}</td>
                <td>{size(pool.in_use_bytes)}</td>
                <td>{size(pool.free_bytes)}</td>
                {looked ? <td>{pool.largest_free_bytes === null ? "" : size(pool.largest_free_bytes)}</td> : null}
                {looked ? <td title="1 - largest free block / all that is free">{fragmentation(pool)}</td> : null}
                {counted ? <td>{pool.segments === null ? "" : number(pool.segments)}</td> : null}
                <td>
                  <Bar
                    parts={[
                      [pool.in_use_bytes / whole.reserved_bytes, "operator", "in use"],
                      [pool.free_bytes / whole.reserved_bytes, "idle hatched", "free"],
                    ]}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function fragmentation({ free_bytes, largest_free_bytes }: Pool): string {
  return largest_free_bytes === null || !free_bytes ? "" : percent(1 - Math.min(1, largest_free_bytes / free_bytes));
}

function saidOf({ in_use_bytes, free_bytes, largest_free_bytes, reserved_bytes }: Pool): string {
  const used = `${size(in_use_bytes)} (${share(in_use_bytes, reserved_bytes)}) in use at the end`;
  if (!free_bytes) return used;
  if (largest_free_bytes === null) return `${used}, ${size(free_bytes)} free`;
  return `${used}; of ${size(free_bytes)} free the largest block has ${size(largest_free_bytes)}, so a larger tensor needs memory that is not reserved yet`;
}
