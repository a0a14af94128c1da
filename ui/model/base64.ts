// Bytes that stand in JSON or in a page.

export function fromBase64(text: string): Uint8Array {
  const native = (Uint8Array as unknown as { fromBase64?(text: string): Uint8Array }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}
