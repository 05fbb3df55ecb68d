import { writeFileSync } from 'node:fs';

/** Rows as NeMo Gym has them: every number equally often. Run from the repository's root. */

function rows(count: number): string {
  return Array.from({ length: count }, (_, i) => {
    const row = {
      responses_create_params: { input: [{ role: 'user', content: '1-8' }] },
      verifier_metadata: { secret: 1 + (i % 8) },
      agent_ref: { type: 'responses_api_agents', name: 'guess' },
    };
    return `${JSON.stringify(row)}\n`;
  }).join('');
}

writeFileSync('examples/nemo-gym/train.jsonl', rows(256));
writeFileSync('examples/nemo-gym/test.jsonl', rows(512));
