// When steps began and ended: with what their devices did, which may end after the host went on.

import type { Profile } from "./profile";
import { EventKindNames } from "./schema.generated";

/** Rows of step events, with when each really began and ended: its last device work ends a step, and a device that is behind
 * does one by one. */
export function wholeSteps(profile: Profile): Map<number, [start: number, end: number]> {
  const { events, threads, devices } = profile.tables;
  const isStep = EventKindNames.indexOf("step");
  const steps: number[] = [];
  const done = new Map<string, number>();
  for (let i = 0; i < events.kind.length; i++) {
    if (events.kind[i] === isStep && events.duration_ns[i] >= 0) steps.push(i);
    else if (events.device[i] >= 0 && events.step[i] >= 0 && events.duration_ns[i] > 0) {
      const key = `${devices.process[events.device[i]]} ${events.step[i]}`;
      done.set(key, Math.max(done.get(key) ?? 0, events.start_ns[i] + events.duration_ns[i]));
    }
  }
  const made = new Map<number, [number, number]>();
  const before = new Map<number, number>();
  for (const event of steps) {
    const thread = events.thread[event];
    const process = thread >= 0 ? threads.process[thread] : devices.process[events.device[event]];
    const began = events.start_ns[event];
    const start = Math.max(began, before.get(process) ?? 0);
    const end = Math.max(start, began + events.duration_ns[event], done.get(`${process} ${events.step[event]}`) ?? 0);
    made.set(event, [start, end]);
    before.set(process, end);
  }
  return made;
}
