// The AI SDK's OpenAI provider, whose default is /v1/responses: prints text, parts, calls, the way it finished, errors.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema, streamText, tool } from "ai";
import { asked, told } from "./talk.mjs";

const { base, key, model, prompt, how, schema } = await asked();
const provider = createOpenAI({ baseURL: base, apiKey: key });
const tools = schema ? { get_weather: tool({ description: "weather", inputSchema: jsonSchema(schema) }) } : undefined;
const settings = { model: provider(model), prompt, tools, maxRetries: 0 };
try {
  if (how === "whole") {
    const { text, finishReason, usage, toolCalls, reasoningText } = await generateText(settings);
    told({ text, finishReason, usage, reasoning: reasoningText, calls: toolCalls.map(({ toolName, input }) => ({ toolName, input })) });
  } else {
    const parts = [];
    const errors = [];
    const stream = streamText({ ...settings, onError: ({ error }) => errors.push(String(error?.message ?? error)) });
    for await (const part of stream.fullStream) parts.push(part);
    const calls = parts.filter(({ type }) => type === "tool-call").map(({ toolName, input }) => ({ toolName, input }));
    const text = parts.filter(({ type }) => type === "text-delta").map(({ text }) => text).join("");
    const finish = parts.findLast(({ type }) => type === "finish");
    told({ text, calls, errors, finishReason: finish?.finishReason, usage: finish?.totalUsage, kinds: [...new Set(parts.map(({ type }) => type))] });
  }
} catch (error) {
  told({ error: { name: error.name, message: error.message, status: error.statusCode } });
}
