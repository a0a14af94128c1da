// node, bundled: reads a `.leadline` file named on the command line and prints its tables as JSON, for tests in Python.

import { openProfile } from "../reader";
import { threadStates } from "../states";
import { summarize } from "../summary";
import { modules } from "../tables/modules";
import { operators } from "../tables/operators";
import { kernels } from "../tables/others";

declare const process: { argv: string[]; stdout: { write(text: string): void } };

export async function print(read: (path: string) => Uint8Array): Promise<void> {
  const profile = await openProfile(read(process.argv[2]));
  const report = summarize(profile, process.argv[2]);
  const said = {
    operators: operators(profile),
    modules: modules(profile),
    kernels: kernels(profile),
    paths: report.paths,
    totals: report.totals,
    meta: report.meta,
    states: threadStates(profile).flatMap((of) =>
      of.start_ns.map((start, i) => [
        profile.tables.threads.tid[of.thread],
        start,
        of.end_ns[i] - start,
        of.state[i],
        of.reason[i],
        of.other[i],
      ]),
    ),
  };
  process.stdout.write(JSON.stringify(said));
}
