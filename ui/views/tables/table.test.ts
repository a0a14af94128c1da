import { expect, test } from "vitest";
import { csv, markdown, type Column } from "./table";

interface Row {
  name: string;
  ns: number;
}
const COLUMNS: Column<Row>[] = [
  { title: "Name", value: (row) => row.name, text: true },
  { title: "", value: (row) => row.ns, picture: true },
  { title: "Time, self", value: (row) => row.ns, cell: () => "1.5 ms" },
];

test("rows as CSV: base units, quotes where they are needed, no pictures", () => {
  const rows = [
    { name: "aten::mm", ns: 1_500_000 },
    { name: 'a "b", c', ns: 2 },
  ];
  expect(csv(COLUMNS, rows)).toBe('Name,"Time, self"\naten::mm,1500000\n"a ""b"", c",2\n');
});

test("a name that a spreadsheet would run stays text", () => {
  const names = ["=1+1", "+x", "-x", "@x", "\tx", "plain"].map((name) => ({ name, ns: 0 }));
  const cells = csv([COLUMNS[0]], names).split("\n").slice(1, -1);
  expect(cells).toEqual(["'=1+1", "'+x", "'-x", "'@x", "'\tx", "plain"]);
});

test("rows as Markdown: as a person reads them, and nothing of a name breaks the table", () => {
  const rows = [{ name: "a|b`c\nd", ns: 2 }];
  expect(markdown(COLUMNS, rows)).toBe("| Name | Time, self |\n| --- | ---: |\n| a\\|b'c\\u{a}d | 1.5 ms |\n");
});
