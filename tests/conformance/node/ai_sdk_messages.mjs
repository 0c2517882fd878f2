// The AI SDK's Anthropic provider: prints text, thoughts, calls, the way it finished, errors.
import { createAnthropic } from "@ai-sdk/anthropic";
import { jsonSchema, streamText, tool } from "ai";
import { asked, told } from "./talk.mjs";

const { base, key, model, prompt, schema } = await asked();
const provider = createAnthropic({ baseURL: base, apiKey: key });
const tools = schema ? { get_weather: tool({ description: "weather", inputSchema: jsonSchema(schema) }) } : undefined;
const parts = [];
const errors = [];
const onError = ({ error }) => errors.push(String(error?.message ?? error));
const stream = streamText({ model: provider(model), prompt, tools, maxRetries: 0, maxOutputTokens: 100, onError });
for await (const part of stream.fullStream) parts.push(part);
const of = (kind) => parts.filter(({ type }) => type === kind);
const words = (kind) => of(kind).map(({ text }) => text).join("");
const finish = parts.findLast(({ type }) => type === "finish");
told({
  text: words("text-delta"),
  reasoning: words("reasoning-delta"),
  calls: of("tool-call").map(({ toolName, input }) => ({ toolName, input })),
  errors,
  finishReason: finish?.finishReason,
  usage: finish?.totalUsage,
});
