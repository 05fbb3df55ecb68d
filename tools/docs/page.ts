import type { Commands } from '../../src/cli/dispatch.ts';
import { markdown } from '../../src/config/describe.ts';

const HEAD = `# Options

Every option of every command. An option can stand in the YAML file given by \`--config\` (nested or dotted), on the
command line as \`--name value\`, \`--name=value\` or \`name=value\`, a switch as \`--name\` or \`--no-name\`, a list as
\`--name a b\` or \`--name a,b\`. The command line wins over the file, a later word over an earlier one. \`none\` takes
away the value of an option that is not text (in the file: \`null\`). Older names are understood, with a notice.

This page is written by \`npm run docs\` from the declarations in the sources.
`;

/** docs/options.md: a section for each command. */
export async function optionsPage(commands: Commands): Promise<string> {
  const sections: string[] = [HEAD];
  for (const [name, { summary, load }] of Object.entries(commands)) {
    const { options, details } = (await load()).command;
    const text = [`## tokenloop ${name}`, `${summary}.${details ? ` ${details}` : ''}`];
    sections.push([...text, ...(Object.keys(options).length > 0 ? [markdown(options)] : ['No options.'])].join('\n\n'));
  }
  return `${sections.join('\n')}\n`;
}
