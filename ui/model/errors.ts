// Everything that can be wrong with a file becomes one of these: one sentence for a person.

export class ProfileFileError extends Error {
  override name = "ProfileFileError";
}

/** Text from a file as it may stand in a message: one line and bounded. */
export function printable(text: string, limit = 80): string {
  const clean = [...text.slice(0, limit)].map((c) => (/[\p{C}\p{Zl}\p{Zp}]/u.test(c) ? "?" : c)).join("");
  return clean + (text.length > limit ? "..." : "");
}
