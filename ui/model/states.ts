// What the profile's threads did while the window was open, from the kernel's events: ran, could have run, or waited; for what,
// and because of whom. The rules are those of python/leadline/trace/states.py; tests/ui compares the two.

import type { Profile } from "./profile";
import { KernelEventKindNames, type KernelEventKind } from "./schema.generated";

export type StateName = "running" | "runnable" | "blocked";

/** One thread's stretches of time in order. */
export interface ThreadStates {
  /** Row of the table `threads`. */
  thread: number;
  start_ns: number[];
  end_ns: number[];
  state: StateName[];
  /** Name of the system call that a blocked stretch waits in; empty where none was recorded. */
  reason: string[];
  /** Of a runnable stretch who held the CPU, of a blocked one who ended it; empty where that is not known. */
  other: string[];
}

const DEAD = 0x30; // EXIT_DEAD and EXIT_ZOMBIE in the state of who left

/** States of every thread that the kernel's events name, by row of `threads`. */
export function threadStates(profile: Profile): ThreadStates[] {
  const events = profile.tables.kernel_events;
  const count = events.time_ns.length;
  if (!count) return [];
  const [from, until] = recordedSpan(profile);
  const watched = new Map<number, Watch>();
  profile.tables.threads.tid.forEach((tid, thread) => {
    if (!watched.has(tid)) watched.set(tid, new Watch(thread, from));
  });
  const names = threadNames(profile);
  for (let i = 0; i < count; i++) {
    const time = events.time_ns[i];
    const kind: KernelEventKind | undefined = KernelEventKindNames[events.kind[i]];
    const [tid, target, value] = [events.tid[i], events.target[i], events.value[i]];
    const who = watched.get(tid);
    if (kind === "syscall_entry" || kind === "syscall_exit") {
      who?.call(profile.text(events.name[i]), kind === "syscall_entry", time <= from);
      continue;
    }
    if (time < from || time > until) continue;
    if (kind === "switch") {
      const sentOff = (value & 0xff) === 0;
      who?.goes(time, sentOff ? "runnable" : value & DEAD ? "ended" : "blocked", -1, sentOff ? target : -1);
      watched.get(target)?.goes(time, "running", tid, -1);
    } else if (kind === "switch_out") who?.goes(time, value === 1 ? "runnable" : "blocked", -1, -1);
    else if (kind === "switch_in") who?.goes(time, "running", -1, -1);
    else if (kind === "exit") who?.goes(time, "ended", -1, -1);
    else if (kind === "waking" || kind === "fork") watched.get(target)?.woken(time, tid, kind === "fork");
  }
  return [...watched.values()].filter((one) => one.moved).map((one) => one.finished(until, names));
}

/** From when to when the kernel was recorded, on the clock of the events. */
function recordedSpan(profile: Profile): [number, number] {
  const { time_ns } = profile.tables.kernel_events;
  const { from_ns: from, until_ns: until } = profile.meta.kernel ?? {};
  if (typeof from === "number" && typeof until === "number" && until >= from && from > 0) return [from, until];
  return [time_ns[0], time_ns[time_ns.length - 1]];
}

function threadNames(profile: Profile): Map<number, string> {
  const { kind, target, name } = profile.tables.kernel_events;
  const named = new Set(["switch", "waking", "fork"].map((one) => KernelEventKindNames.indexOf(one as "switch")));
  const names = new Map<number, string>();
  const { tid, name: own } = profile.tables.threads;
  tid.forEach((one, row) => names.set(one, profile.text(own[row])));
  for (let i = 0; i < kind.length; i++)
    if (target[i] > 0 && named.has(kind[i])) names.set(target[i], profile.text(name[i]));
  return names.set(0, "idle");
}

type Doing = StateName | "ended";

interface Stretch {
  start: number;
  end: number;
  state: StateName;
  reason: string;
  other: number;
}

/** One thread while its events come in order. */
class Watch {
  moved = false;
  private state: Doing = "running";
  private since: number;
  private holder = -1;
  private open = "";
  private asked = false;
  /** No call was entered or left before the stretch began. */
  private isEarly = true;
  /** What it waited in when the window opened; told by the first call that it left without having entered. */
  private first = "";
  private reason = "";
  private early: Stretch[] = [];
  private readonly stretches: Stretch[] = [];

  constructor(
    private readonly thread: number,
    from: number,
  ) {
    this.since = from;
  }

  call(name: string, enters: boolean, beforeAll: boolean): void {
    if (!this.asked && !enters) this.first = name;
    this.asked = true;
    this.open = enters ? name : "";
    if (!beforeAll) return;
    this.isEarly = false;
    this.reason = this.open;
  }

  goes(time: number, state: Doing, by: number, holder: number): void {
    if (!this.moved)
      this.state = state === "running" ? "runnable" : "running"; // its first move says what it did before
    else if (this.state === "ended" && state !== "running" && state !== "ended") return;
    this.turns(time, state, by, holder);
  }

  woken(time: number, by: number, isNew: boolean): void {
    if (!this.moved) this.state = isNew ? "ended" : "blocked";
    else if (this.state !== "blocked") return; // who runs or may run is not woken
    this.turns(time, "runnable", by, -1);
  }

  private turns(time: number, state: Doing, by: number, holder: number): void {
    this.close(time, by);
    this.moved = true;
    this.state = state;
    this.since = time;
    this.holder = holder;
    this.reason = this.open;
    this.isEarly = !this.asked;
  }

  private close(end: number, by: number): void {
    const { state, since: start } = this;
    if (end <= start || state === "ended") return;
    // whoever left when it came back held the CPU last; who came first is often a kernel thread of microseconds
    const other =
      state === "blocked" || (state === "runnable" && by > 0) ? by : state === "runnable" ? this.holder : -1;
    const stretch = { start, end, state, reason: state === "blocked" ? this.reason : "", other };
    if (state === "blocked" && this.isEarly) this.early.push(stretch);
    this.stretches.push(stretch);
  }

  finished(until: number, names: Map<number, string>): ThreadStates {
    this.close(until, -1);
    for (const one of this.early) if (!one.reason) one.reason = this.first;
    const { stretches } = this;
    return {
      thread: this.thread,
      start_ns: stretches.map((one) => one.start),
      end_ns: stretches.map((one) => one.end),
      state: stretches.map((one) => one.state),
      reason: stretches.map((one) => one.reason),
      other: stretches.map((one) => (one.other < 0 ? "" : (names.get(one.other) ?? ""))),
    };
  }
}
