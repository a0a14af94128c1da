// node, bundled: reads a `.leadline` file named on the command line and prints the states of its threads as JSON, for tests in
// Python.

import { openProfile } from "../reader";
import { threadStates } from "../states";

declare const process: { argv: string[]; stdout: { write(text: string): void } };

export async function print(read: (path: string) => Uint8Array): Promise<void> {
  const profile = await openProfile(read(process.argv[2]));
  const states = threadStates(profile).flatMap((of) =>
    of.start_ns.map((start, i) => [
      profile.tables.threads.tid[of.thread],
      start,
      of.end_ns[i] - start,
      of.state[i],
      of.reason[i],
      of.other[i],
    ]),
  );
  process.stdout.write(JSON.stringify({ states }));
}
