import { ApiError } from './api-error.ts';
import type { AnswerRequest } from './dialects/contracts.ts';

/**
 * Refuses a required tool that is not there. A request may also ask for what the policy cannot be held to (a call, a form
 * of the text) or what is the run's to decide (the distribution): with `strict` that is refused, too; else it is answered,
 * and counted where the answer is not as it was asked for.
 * @throws ApiError 400
 */
export function checkDemands(request: AnswerRequest, strict: boolean): void {
  const { tools, toolChoice, toolName, format, overridden } = request;
  if (toolChoice === 'required' && !tools.some(tool => toolName === undefined || tool.function.name === toolName)) {
    const which = toolName === undefined ? 'a call, and there are no tools' : `the tool ${JSON.stringify(toolName)}`;
    throw new ApiError(400, `tool_choice requires ${which}; give it among tools`);
  }
  const demands = [
    ...(toolChoice === 'required' ? ['tool_choice'] : []),
    ...(format === undefined ? [] : [format.name]),
    ...overridden,
  ];
  if (!strict || demands.length === 0) return;
  throw new ApiError(
    400,
    `${demands.join(', ')}: no request changes how the policy answers; leave it out, or turn agent.strict off to have it counted instead`,
    { code: 'unsupported_parameter' },
  );
}
