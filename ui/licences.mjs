// Lays the licences of what the page is made of beside it: dist/THIRD-PARTY.txt.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const here = new URL(".", import.meta.url);
const { packages } = JSON.parse(readFileSync(new URL("package-lock.json", here), "utf8"));
const names = new Set(Object.keys(packages[""].dependencies));
let text = "The page contains the following, under their own licences.\n";
for (const name of names) {
  const place = `node_modules/${name}`;
  const { version, license, dependencies } = packages[place];
  Object.keys(dependencies ?? {}).forEach((need) => names.add(need));
  text += `\n${"=".repeat(80)}\n${name} ${version}: ${license}\n\n`;
  for (const file of readdirSync(new URL(place, here)).sort()) {
    if (/^(licen[cs]e|notice|copying)/i.test(file)) {
      text += readFileSync(new URL(`${place}/${file}`, here), "utf8");
    }
  }
}
writeFileSync(new URL("dist/THIRD-PARTY.txt", here), text);
