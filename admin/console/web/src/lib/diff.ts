// The difference of two texts, line by line.

export interface Change {
  sign: " " | "-" | "+";
  text: string;
}

/** Lines that stay, go and come. For texts of more than 2,000 lines what is between the equal ends counts as replaced. */
export function diff(before: string, after: string): Change[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const x = a.slice(head, a.length - tail);
  const y = b.slice(head, b.length - tail);
  const same = (lines: string[]): Change[] => lines.map((text) => ({ sign: " ", text }));
  return [...same(a.slice(0, head)), ...middle(x, y), ...same(a.slice(a.length - tail))];
}

function middle(x: string[], y: string[]): Change[] {
  const out: Change[] = [];
  if (x.length > 2000 || y.length > 2000) {
    for (const text of x) out.push({ sign: "-", text });
    for (const text of y) out.push({ sign: "+", text });
    return out;
  }
  // The longest common subsequence: length[i][j] of x from i and y from j.
  const width = y.length + 1;
  const length = new Uint16Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i--)
    for (let j = y.length - 1; j >= 0; j--)
      length[i * width + j] =
        x[i] === y[j]
          ? length[(i + 1) * width + j + 1]! + 1
          : Math.max(length[(i + 1) * width + j]!, length[i * width + j + 1]!);
  let i = 0;
  let j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      out.push({ sign: " ", text: x[i]! });
      i++;
      j++;
    } else if (j >= y.length || (i < x.length && length[(i + 1) * width + j]! >= length[i * width + j + 1]!)) {
      out.push({ sign: "-", text: x[i++]! });
    } else out.push({ sign: "+", text: y[j++]! });
  }
  return out;
}
