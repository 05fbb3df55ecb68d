/** The parts of `@modelcontextprotocol/sdk` that are used, loaded when the first server is. */
export async function loadSdk() {
  try {
    const [{ Client }, stdio, http, { AjvJsonSchemaValidator }, { ErrorCode, McpError }] = await Promise.all([
      import('@modelcontextprotocol/sdk/client/index.js'),
      import('@modelcontextprotocol/sdk/client/stdio.js'),
      import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
      import('@modelcontextprotocol/sdk/validation/ajv'),
      import('@modelcontextprotocol/sdk/types.js'),
    ]);
    const { StdioClientTransport } = stdio;
    const { StreamableHTTPClientTransport } = http;
    return { Client, StdioClientTransport, StreamableHTTPClientTransport, AjvJsonSchemaValidator, ErrorCode, McpError };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error('MCP servers need a package beside tokenloop: npm install @modelcontextprotocol/sdk', {
      cause: error,
    });
  }
}

export type Sdk = Awaited<ReturnType<typeof loadSdk>>;
