// Makes screenshots small: reduces their colors to a palette, and maps the rarest ones to their
// nearest neighbors.
import { deflateSync, inflateSync, crc32 } from "node:zlib";

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function chunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc32(body), body.length + 4);
  return out;
}

/** The chunks of a PNG of eight bits a channel, all data of its picture together. */
function parse(png: Buffer): { width: number; height: number; channels: number; data: Buffer } {
  const parts: Buffer[] = [];
  let head = Buffer.alloc(0);
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const name = png.toString("latin1", at + 4, at + 8);
    const data = png.subarray(at + 8, at + 8 + length);
    if (name === "IHDR") head = Buffer.from(data);
    if (name === "IDAT") parts.push(data);
    at += length + 12;
  }
  return { width: head.readUInt32BE(0), height: head.readUInt32BE(4), channels: head[9] === 6 ? 4 : 3, data: inflateSync(Buffer.concat(parts)) };
}

/** The colours of all pixels, with the filters of PNG undone. */
function pixels({ width, height, channels, data }: ReturnType<typeof parse>): Uint32Array {
  const out = new Uint32Array(width * height);
  const stride = width * channels;
  let before = new Uint8Array(stride);
  for (let y = 0; y < height; y++) {
    const filter = data[y * (stride + 1)]!;
    const line = new Uint8Array(data.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)));
    for (let i = 0; i < stride; i++) {
      const a = i < channels ? 0 : line[i - channels]!;
      const b = before[i]!;
      const c = i < channels ? 0 : before[i - channels]!;
      const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
      const paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
      line[i] = line[i]! + [0, a, b, (a + b) >> 1, paeth][filter]!;
    }
    for (let x = 0; x < width; x++) out[y * width + x] = (line[x * channels]! << 16) | (line[x * channels + 1]! << 8) | line[x * channels + 2]!;
    before = line;
  }
  return out;
}

const distance = (p: number, q: number) => ((p >> 16) - (q >> 16)) ** 2 + (((p >> 8) & 255) - ((q >> 8) & 255)) ** 2 + ((p & 255) - (q & 255)) ** 2;

/** The same picture with at most 256 colours. */
export function small(png: Buffer): Buffer {
  const picture = parse(png);
  const all = pixels(picture);
  const counts = new Map<number, number>();
  for (const p of all) counts.set(p, (counts.get(p) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([p]) => p);
  const index = new Map(palette.map((p, i) => [p, i]));
  for (const p of counts.keys()) {
    if (index.has(p)) continue;
    let best = 0;
    for (let i = 1; i < palette.length; i++) if (distance(p, palette[i]!) < distance(p, palette[best]!)) best = i;
    index.set(p, best);
  }
  const { width, height } = picture;
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) lines[y * (width + 1) + 1 + x] = index.get(all[y * width + x]!)!;
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((p) => [p >> 16, (p >> 8) & 255, p & 255]));
  return Buffer.concat([signature, chunk("IHDR", head), chunk("PLTE", colours), chunk("IDAT", deflateSync(lines, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}
