// Hands something that was made on the page to the browser as a file.

export function saved(name: string, type: string, content: BlobPart): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A menu of what can be saved, by how it is called. */
export function SaveMenu({ choices }: { choices: Record<string, () => unknown> }) {
  return (
    <select
      aria-label="Save as"
      value=""
      onChange={(event) => {
        const choice = event.currentTarget.value;
        event.currentTarget.value = "";
        choices[choice]?.();
      }}
    >
      <option value="">save as …</option>
      {Object.keys(choices).map((name) => (
        <option value={name}>{name}</option>
      ))}
    </select>
  );
}
