// What keys do on every page: arrows go along the tabs, one key turns light to dark.

export function arrows(event: KeyboardEvent, names: string[], current: string, show: (name: string) => void): void {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  const next = names[(names.indexOf(current) + step + names.length) % names.length];
  show(next);
  document.getElementById(`tab-${next}`)?.focus();
}

export function switchTheme(): void {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--theme").trim() === "dark";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  dispatchEvent(new Event("themechange"));
}
