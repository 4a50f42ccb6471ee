// Shows openapi.json: each route with its parameters and a button that tries it. Everything is
// made as text nodes, so nothing that comes from the server is ever read as HTML.

const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

const kindOf = (schema) => {
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.type === "array") return `${kindOf(schema.items)}, repeatable`;
  return "minimum" in schema ? `${schema.type}, ${schema.minimum} to ${schema.maximum}` : schema.type;
};

const addressOf = (path, inputs) => {
  const query = new URLSearchParams();
  for (const { parameter, input } of inputs) {
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (input.value) query.append(parameter.name, input.value);
  }
  return query.size ? `${path}?${query}` : path;
};

const tryIt = async (method, address, output) => {
  output.textContent = "…";
  const response = await fetch(address, { method: method.toUpperCase() });
  const text = await response.text();
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Not JSON: as it is.
  }
  output.textContent = `${response.status} ${address}\n\n${shown}`;
};

const show = (path, method, operation) => {
  const inputs = operation.parameters.map((parameter) => ({ parameter, input: make("input") }));
  const rows = inputs.map(({ parameter, input }) =>
    make("tr", {},
      make("td", {}, make("code", {}, parameter.name)),
      make("td", {}, kindOf(parameter.schema)),
      make("td", {}, parameter.description),
      make("td", {}, input)));
  const output = make("pre");
  const media = Object.keys(operation.responses["200"].content)[0];
  const button = make("button", { type: "button" }, "Try it");
  button.addEventListener("click", () => void tryIt(method, addressOf(path, inputs), output));
  return make("details", {},
    make("summary", {},
      make("span", { className: "method" }, method.toUpperCase()),
      make("code", {}, path), ` ${operation.summary}`),
    ...(rows.length ? [make("table", {}, ...rows)] : []),
    make("p", {}, "Answers ", make("code", {}, media)),
    // A stream has no end to wait for.
    ...(media === "text/event-stream" ? [] : [button, output]),
    make("pre", {}, JSON.stringify(operation.responses["200"].content[media].schema, null, 2)));
};

const specification = await (await fetch("/api/openapi.json")).json();
document.getElementById("about").textContent = specification.info.description;
for (const [path, methods] of Object.entries(specification.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    document.getElementById("routes").append(show(path, method, operation));
  }
}
