// Where the installed packages lie. These programs stand in the repository, the packages in a cache
// that `LODESTAR_PEERS` names, so a plain `import` would not find them.

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder with `node_modules` and the Python environment. */
export const home = process.env.LODESTAR_PEERS ?? dirname(fileURLToPath(import.meta.url));

/** `require` as from inside that folder. */
export const need = createRequire(join(home, 'package.json'));

/** Splits a command line into options, flags and what follows `--`. */
export function parse(argv, { options = [], flags = [], lists = [] }) {
  const given = { rest: [] };
  for (const name of lists) given[name] = [];
  for (let i = 0; i < argv.length; i += 1) {
    if (argv[i] === '--') {
      given.rest = argv.slice(i + 1);
      break;
    }
    const name = argv[i].replace(/^--/, '');
    if (flags.includes(name)) given[name] = true;
    else if (options.includes(name)) given[name] = argv[(i += 1)];
    else if (lists.includes(name)) given[name].push(argv[(i += 1)]);
    else throw new Error(`unknown option \`${argv[i]}\``);
  }
  return given;
}
