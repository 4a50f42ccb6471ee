// How the page is built: into dist/, with relative paths and nothing inline, so that the server
// can embed it and send it with `Content-Security-Policy: default-src 'self'`.
import { defineConfig } from "vitest/config";

export default defineConfig({
  base: "./",
  build: {
    // What light and dark need of CSS, and no transpiling for browsers older than that.
    target: ["chrome111", "firefox113", "safari16.4"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 250,
  },
  server: {
    proxy: { "/api": "http://127.0.0.1:8270" },
  },
  test: {
    include: ["test/**/*.test.ts"],
  },
});
