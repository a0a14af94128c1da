// The summary that `leadline analyze --save` keeps in a profile, for places without Python. It is someone else's data: parts
// of another type than they should have count as absent.

import type { Profile } from "./profile";
import { programOf } from "./program";
import type { Loss, Report } from "./report";
import { isObject } from "./reader";
import { LossKindDocs, LossKindNames } from "./schema.generated";

/** What the file says of itself, and the report that it holds; `known` is false where it holds none. */
export function storedReport(profile: Profile, file: string): Report {
  const empty = emptyReport(profile, file);
  const { report: saved } = profile.meta;
  if (!isObject(saved) || !isObject(saved.format) || saved.format.version !== 1) return empty;
  const { ranks, verdict, start, memory, gpu, programs } = saved;
  const made = { ...(shaped(saved, empty) as Report), ranks, verdict, start, memory, gpu, programs } as Report;
  return { ...made, meta: { ...made.meta, file }, losses: empty.losses, known: true };
}

/** The keys of `like`, of `one` where they are of the same type there. */
function shaped(one: unknown, like: unknown): unknown {
  if (like === null) return typeof one === "number" ? one : null;
  if (!isObject(like)) return typeof one === typeof like && Array.isArray(one) === Array.isArray(like) ? one : like;
  if (!isObject(one)) return like;
  const all = Object.keys(like).length ? Object.keys(like) : Object.keys(one); // `totals` and `of` have any keys
  return Object.fromEntries(all.map((key) => [key, key in like ? shaped(one[key], like[key]) : one[key]]));
}

function emptyReport(profile: Profile, file: string): Report {
  const { processes, threads } = profile.tables;
  const { complete, leadline, wall_ns } = profile.meta;
  return {
    meta: {
      program: programOf(profile),
      started_at: "",
      wall_ns: typeof wall_ns === "number" && wall_ns > 0 ? wall_ns : 0,
      host: "",
      python: "",
      frameworks: [],
      asked: "",
      processes: processes.pid.length,
      threads: threads.tid.length,
      complete: typeof complete === "boolean" ? complete : processes.complete.every((one) => one === 1),
      file,
      leadline: typeof leadline === "string" ? leadline : "",
    },
    totals: {},
    time_split: [],
    path_metric: profile.metrics.main,
    focus: null,
    paths: [],
    operator_calls: 0,
    phases: [],
    memory: null,
    gpu: null,
    losses: losses(profile),
    cost: { callbacks_ns: 0, events: 0, held_bytes: 0, percent: null, measured: false },
    next: [],
    tables: { operators: [], modules: [], layers: [], kernels: [], lines: [], processes: [], of: {} },
    known: false,
  };
}

function losses(profile: Profile): Loss[] {
  const { kind, count, detail } = profile.tables.losses;
  const made: Loss[] = [];
  for (let i = 0; i < kind.length; i++) {
    const name = LossKindNames[kind[i]];
    const sentence = profile.text(detail[i]);
    if (!count[i] && !sentence) continue;
    made.push({
      kind: name ?? `kind ${kind[i]}`,
      count: count[i],
      meaning: name ? LossKindDocs[name] : "a loss that a newer release of leadline knows",
      detail: sentence,
      process: "",
    });
  }
  return made;
}
