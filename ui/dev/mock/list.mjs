// Lists as the server gives them: filtered, sorted, a page of them.

export function list(world, resource, params) {
  const all = rows(world, resource);
  const filters = params.getAll("filter").map(parsed);
  const text = params.get("q")?.toLowerCase();
  const fits = (row) =>
    filters.every(({ key, not, value }) => {
      if (!(key in row))
        throw new Error(`There is no field "${key}". There are: ${Object.keys(row).join(", ")}.`);
      return (String(row[key]).toLowerCase() === value) !== not;
    }) &&
    (!text ||
      Object.values(row).some(
        (value) => typeof value === "string" && value.toLowerCase().includes(text),
      ));
  const found = all.filter(fits);
  const sort = params.get("sort");
  if (sort) {
    const key = sort.replace(/^-/, "");
    const sign = sort.startsWith("-") ? -1 : 1;
    // What is not known comes last, whichever way it is sorted.
    found.sort((a, b) => {
      if (a[key] === null || b[key] === null) return (a[key] === null) - (b[key] === null);
      return sign * (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0);
    });
  }
  const offset = Number(params.get("offset") ?? 0);
  const limit = Number(params.get("limit") ?? 100);
  return { total: all.length, filtered: found.length, rows: found.slice(offset, offset + limit) };
}

function rows(world, resource) {
  const now = Date.now();
  const made = {
    tasks: () => Array.from({ length: world.schedule.known(now) }, (_, i) => world.task(i, now)),
    actors: () => world.actors(),
    objects: () => world.objects(),
    nodes: () => world.nodeRows(now),
    workers: () => world.workerRows(),
    jobs: () => world.jobs(),
    "placement-groups": () => world.placementGroups(),
  };
  return made[resource]();
}

function parsed(filter) {
  const match = /^(\w+)(!?=)(.*)$/.exec(filter);
  if (!match) throw new Error(`"${filter}" is no filter. One is like: state=FAILED`);
  return { key: match[1], not: match[2] === "!=", value: match[3].toLowerCase() };
}
