// A sparkline.

/** Draws the last values as a small line. The label is what screen readers hear. */
export function Spark({
  values,
  label,
  width = 84,
  height = 22,
}: {
  values: number[];
  label: string;
  width?: number;
  height?: number;
}) {
  const max = Math.max(...values, 0);
  const n = Math.max(values.length - 1, 1);
  const point = (v: number, i: number) =>
    `${((i / n) * (width - 2) + 1).toFixed(1)},${(height - 2 - (max > 0 ? v / max : 0) * (height - 4)).toFixed(1)}`;
  const line = values.length > 1 ? values.map(point).join(" ") : `1,${height - 2} ${width - 1},${height - 2}`;
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {values.length > 1 && <polygon points={`1,${height - 1} ${line} ${width - 1},${height - 1}`} />}
      <polyline points={line} />
    </svg>
  );
}
