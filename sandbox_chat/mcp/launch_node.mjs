// Starts a program of node with credentials among its arguments, which must not stand on a command line that every user can read.
// `node launch_node.mjs NAMES PROGRAM ARGUMENT…`: {{NAME}} in an argument is the value of that variable, if NAMES (with commas) has it.
import { pathToFileURL } from "node:url";

const [names, program, ...words] = process.argv.slice(2);
const values = Object.fromEntries(names.split(",").map((name) => [name, process.env[name] ?? ""]));
for (const name of Object.keys(values)) delete process.env[name];
const filled = words.map((word) => word.replace(/\{\{(\w+)\}\}/g, (whole, name) => values[name] ?? whole));
process.argv = [process.argv[0], program, ...filled];
await import(pathToFileURL(program).href);
