// Tests of pytest in a Python file, found by its text: good enough to offer a link, without asking Python. Pure.

export interface FoundTest {
  /** Counted from 0. */
  line: number;
  /** `Class::name`, as pytest takes it behind `file::`. */
  id: string;
}

export function isTestFile(path: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return /^test_.*\.py$|_test\.py$/.test(name);
}

export function testsIn(text: string): FoundTest[] {
  const found: FoundTest[] = [];
  let classes: { indent: number; name: string }[] = [];
  text.split(/\r?\n/).forEach((source, line) => {
    const match = /^(\s*)(?:async\s+)?(def|class)\s+(\w+)/.exec(source);
    if (!match) return;
    const [, spaces, what, name] = match;
    const indent = spaces.replaceAll("\t", "    ").length;
    classes = classes.filter((one) => one.indent < indent);
    if (what === "class") {
      classes.push({ indent, name: /^Test/.test(name) ? name : "" });
      return;
    }
    const inside = classes.map((one) => one.name);
    const isMethod = inside.length > 0;
    if (/^test/.test(name) && (isMethod ? inside.every(Boolean) : indent === 0))
      found.push({ line, id: [...inside, name].join("::") });
    classes.push({ indent, name: "" }); // what is defined inside a function is no test
  });
  return found;
}

/** The test that a line belongs to. */
export function testAt(text: string, line: number): FoundTest | undefined {
  return testsIn(text)
    .filter((one) => one.line <= line)
    .pop();
}
