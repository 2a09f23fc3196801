// Completions of keys and values from the JSON schema.

/** Follows references and collects the variants of a schema node. */
function variants(node, root, seen = new Set()) {
  if (!node || seen.has(node)) return [];
  seen.add(node);
  const found = [];
  if (node.$ref) {
    const target = node.$ref.replace(/^#\//, "").split("/").reduce((at, key) => at?.[key], root);
    found.push(...variants(target, root, seen));
  }
  for (const list of [node.anyOf, node.oneOf, node.allOf]) {
    for (const part of list ?? []) found.push(...variants(part, root, seen));
  }
  for (const part of [node.then, node.else]) found.push(...variants(part, root, seen));
  found.push(node);
  return found;
}

/** The nodes at a path of keys. */
function at(root, path) {
  let nodes = variants(root, root);
  for (const key of path) {
    const next = nodes.flatMap((node) => {
      const child = node.properties?.[key] ?? (typeof node.additionalProperties === "object" ? node.additionalProperties : null);
      return child ? [child] : [];
    });
    nodes = next.flatMap((node) => variants(node, root));
    // Of a list, the items.
    nodes.push(...nodes.flatMap((node) => (node.items ? variants(node.items, root) : [])));
  }
  return nodes;
}

/** The keys of the table that a line is in. */
function tableOf(before) {
  const heads = [...before.matchAll(/^[ \t]*\[\[?([^\]\n]+)\]\]?/gm)];
  return heads.length ? keys(heads.at(-1)[1]) : [];
}

function keys(text) {
  return text.split(".").map((key) => key.trim().replace(/^["']|["']$/g, "")).filter(Boolean);
}

/** What can stand at the end of `before`: the start that is there already, and the choices. */
export function completions(before, schema) {
  const line = before.slice(before.lastIndexOf("\n") + 1);
  if (line.includes("#")) return { start: "", choices: [] };
  const table = tableOf(before.slice(0, before.length - line.length));
  const value = line.match(/^\s*([\w."'-]+)\s*=\s*(["']?)([\w.-]*)$/);
  if (value) {
    const [, key, quote, start] = value;
    const nodes = at(schema, [...table, ...keys(key)]);
    const values = nodes.flatMap((node) => [...(node.enum ?? []), ...("const" in node ? [node.const] : [])]);
    if (nodes.some((node) => node.type === "boolean")) values.push(true, false);
    const texts = [...new Set(values.map((of) => (typeof of === "string" && !quote ? JSON.stringify(of) : String(of))))];
    return { start, choices: texts.filter((text) => text.replace(/^"/, "").startsWith(start)).map((text) => ({ text, about: "" })) };
  }
  const key = line.match(/^\s*(\[?\[?)([\w.-]*)$/);
  if (!key) return { start: "", choices: [] };
  const [, head, typed] = key;
  const parents = typed.includes(".") ? keys(typed.slice(0, typed.lastIndexOf("."))) : [];
  const start = typed.slice(typed.lastIndexOf(".") + 1);
  const path = head ? parents : [...table, ...parents];
  const found = new Map();
  for (const node of at(schema, path)) {
    for (const [name, child] of Object.entries(node.properties ?? {})) {
      if (name.startsWith(start) && !found.has(name)) found.set(name, child.description ?? "");
    }
  }
  const choices = [...found].map(([name, about]) => ({ text: name, about }));
  return { start, choices };
}
