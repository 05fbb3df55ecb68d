import { resolve } from 'node:path';
import { z } from 'zod';
import { options } from '../options/option.ts';
import { defineCommand } from './command.ts';
import { locateModel } from './model.ts';

const mergeOptions = options({
  model: {
    schema: z.string().min(1),
    help: 'The base: directory of a Hugging Face checkpoint, or its name on the hub (organisation/name)',
    aliases: ['model_path'],
  },
  revision: {
    schema: z.string().min(1).optional(),
    help: 'Branch, tag or commit of a base that is fetched from the hub; without it its main branch',
  },
  adapter: {
    schema: z.string().min(1),
    help: 'Directory of the LoRA adapter, in the layout of PEFT',
    aliases: ['lora_path'],
  },
  output: {
    schema: z.string().min(1),
    help: 'Directory of the merged checkpoint',
    aliases: ['output_path'],
  },
  dtype: {
    schema: z.enum(['float32', 'bfloat16']).default('float32'),
    help: 'Type of the merged weights; float32 loses nothing',
  },
});

export const command = defineCommand({
  name: 'merge',
  options: mergeOptions,
  details: 'The merged model has the tokenizer and chat template of its base, and needs the adapter no more.',
  async run(context) {
    const { model: name, revision, adapter, output, dtype } = context.values;
    const { mergeAdapter } = await import('../engines/onnx/export.ts');
    const model = await locateModel(name, revision, context);
    const target = resolve(context.cwd, output);
    await mergeAdapter({
      model,
      adapter: resolve(context.cwd, adapter),
      output: target,
      dtype: dtype === 'float32' ? 'F32' : 'BF16',
    });
    context.stdout.write(`model: ${target}\n`);
    return 0;
  },
});
