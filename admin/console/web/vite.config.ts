import { defineConfig } from "vite";

// The address of a daemon or of dev/mock.mjs, for "npm run dev".
const daemon = "http://127.0.0.1:7099";

export default defineConfig({
  base: "./",
  server: { host: "127.0.0.1", proxy: { "/api": daemon, "/auth": daemon } },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    assetsInlineLimit: 0,
    license: { fileName: "licenses.md" },
  },
});
