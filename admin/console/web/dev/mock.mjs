// A stand-in for the daemon while pages are written: "npm run build && npm run mock", then http://127.0.0.1:7099/.
// It serves ../dist and answers the API from fixtures. It never ships. MOCK_TOKEN=secret asks to sign in.
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { routes as core, tail } from "./fixtures.mjs";
import { overview, sample } from "./overview.mjs";

const here = import.meta.dirname;
const dist = process.env.MOCK_DIST ?? join(here, "..", "dist");
const port = Number(process.env.MOCK_PORT ?? 7099);
const prefix = process.env.MOCK_PREFIX ?? "/";
const token = process.env.MOCK_TOKEN;
const extra = existsSync(join(here, "system.mjs")) ? (await import("./system.mjs")).system : {};
const routes = { ...core, ...extra };

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const csp =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'self'";

function find(method, path) {
  const have = path.split("/");
  for (const [route, answer] of Object.entries(routes)) {
    const [m, pattern] = route.split(" ");
    const want = pattern.split("/");
    if (m !== method || want.length !== have.length) continue;
    if (!want.every((w, i) => w.startsWith(":") || w === have[i])) continue;
    const params = {};
    want.forEach((w, i) => {
      if (w.startsWith(":")) params[w.slice(1)] = decodeURIComponent(have[i]);
    });
    return { answer, params };
  }
}

function json(res, status, body, type = "application/json") {
  res.writeHead(status, { "Content-Type": type });
  res.end(body === undefined ? undefined : JSON.stringify(body));
}

function stream(req, res, begin) {
  res.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  const send = (event, data, id) =>
    res.write(`${id ? `id: ${id}\n` : ""}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const stop = begin(send);
  req.on("close", stop);
}

function page(res, path) {
  const file = join(dist, path);
  if (path !== "/" && !path.includes("..") && existsSync(file)) {
    res.writeHead(200, {
      "Content-Type": types[extname(file)] ?? "application/octet-stream",
      "Content-Security-Policy": csp,
    });
    return res.end(readFileSync(file));
  }
  res.writeHead(200, { "Content-Type": "text/html", "Content-Security-Policy": csp });
  res.end(readFileSync(join(dist, "index.html"), "utf8").replace('<base href="/"', `<base href="${prefix}"`));
}

async function body(req) {
  let text = "";
  for await (const part of req) text += part;
  return text ? JSON.parse(text) : {};
}

const server = createServer(async (req, res) => {
  const url = new URL(req.url, "http://mock");
  const path = `/${url.pathname.slice(prefix.length)}`;
  const signedIn = !token || (req.headers.cookie ?? "").includes("mock=1");
  if (path === "/auth/methods") return json(res, 200, { token: true, oidc: true });
  if (path === "/auth/session") {
    if ((await body(req)).token !== token)
      return json(res, 401, { title: "unknown token" }, "application/problem+json");
    res.setHeader("Set-Cookie", "mock=1; Path=/; HttpOnly; SameSite=Strict");
    return json(res, 204);
  }
  if (path === "/auth/logout") {
    res.setHeader("Set-Cookie", "mock=; Path=/; Max-Age=0");
    return json(res, 204);
  }
  if (!path.startsWith("/api/v1/")) return page(res, path);
  if (!signedIn) return json(res, 401, { title: "sign in" }, "application/problem+json");
  const api = path.slice("/api/v1".length);
  if (api === "/events")
    return stream(req, res, (send) => {
      send("overview", overview());
      const timer = setInterval(() => {
        const s = sample();
        send("sample", s, s.t);
        send("overview", overview());
      }, 2000);
      return () => clearInterval(timer);
    });
  if (api === "/messages/tail")
    return stream(req, res, (send) => {
      const timer = setInterval(() => send("message", tail()), 700);
      return () => clearInterval(timer);
    });
  const found = find(req.method, api);
  if (!found)
    return json(
      res,
      404,
      {
        title: "Not Found",
        status: 404,
        detail: `The mock has nothing for ${req.method} ${api}.`,
        next: "postrider status",
      },
      "application/problem+json",
    );
  const answer = found.answer(url, found.params, req.method === "GET" ? undefined : await body(req));
  if (answer?.status >= 400 && answer.title) return json(res, answer.status, answer, "application/problem+json");
  json(res, 200, answer);
});
server.listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}${prefix}`));
