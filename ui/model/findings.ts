// The findings that `leadline analyze --save` keeps in a profile: someone else's data, so every part is looked at.

import type { Profile } from "./profile";
import { isObject } from "./reader";
import type { Finding, Findings } from "./report";

const MOST = 1000;

/** Null where the file holds none, or something that is none. */
export function savedFindings(profile: Profile): Findings | null {
  const saved = profile.meta.findings;
  if (!isObject(saved) || !Array.isArray(saved.findings)) return null;
  return {
    state_text: text(saved.state_text) || "no problem found", // an older file does not say
    steps: numberOf(saved.steps),
    step_ns: numberOf(saved.step_ns),
    findings: objects(saved.findings).map((one) => finding(one, profile.size)),
    not_applicable: objects(saved.not_applicable).map((one) => ({ rule: text(one.rule), reason: text(one.reason) })),
    failed: objects(saved.failed).map((one) => ({ rule: text(one.rule), error: text(one.error) })),
    notes: texts(saved.notes),
  };
}

function finding(one: Record<string, unknown>, size: number): Finding {
  const gain = isObject(one.gain) ? one.gain : {};
  return {
    rule: text(one.rule),
    severity: one.severity === "warning" ? "warning" : "info",
    title: text(one.title),
    gain: {
      low_ns: numberOf(gain.low_ns),
      expected_ns: numberOf(gain.expected_ns),
      high_ns: numberOf(gain.high_ns),
      basis: text(gain.basis),
      per: text(gain.per),
      of_ns: numberOf(gain.of_ns),
    },
    paths: list(one.paths).filter(
      (row): row is number => Number.isInteger(row) && (row as number) >= 0 && (row as number) < size,
    ),
    lines: objects(one.lines).map((line) => ({
      file: text(line.file),
      line: Math.max(0, Math.trunc(numberOf(line.line))),
      function: text(line.function),
      short: text(line.short) || text(line.file),
      text: text(line.text),
      context: text(line.context),
    })),
    evidence: texts(one.evidence),
    remedy: text(one.remedy),
    learn_more: text(one.learn_more),
    scenario: text(one.scenario),
  };
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value.slice(0, MOST) : []);
const objects = (value: unknown) => list(value).filter(isObject);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const texts = (value: unknown) => list(value).filter((one): one is string => typeof one === "string");
const numberOf = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0);
