// LangChain.js and the AI SDK's openai-compatible provider: a tool's round trip, an answer held to a schema, an embedding.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool as langchainTool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { embedMany, generateText, isStepCount, Output, tool } from "ai";
import { z } from "zod";
import { asked, told } from "./talk.mjs";

const { base, key, model, prompt, how } = await asked();
const description = "The weather in a city.";
const City = z.object({ city: z.string() });
const Person = z.object({ name: z.string(), age: z.number() });
const weather = ({ city }) => `rain in ${city}`;
const langchain = new ChatOpenAI({ configuration: { baseURL: base }, apiKey: key, model, maxRetries: 0 });
const provider = createOpenAICompatible({ name: "faregate", baseURL: base, apiKey: key, supportsStructuredOutputs: true });

const ways = {
  async "langchain tools"() {
    const getWeather = langchainTool(weather, { name: "get_weather", description, schema: City });
    const bound = langchain.bindTools([getWeather]);
    const talk = [new HumanMessage(prompt)];
    talk.push(await bound.invoke(talk));
    for (const { id, args } of talk[1].tool_calls) {
      talk.push(new ToolMessage({ tool_call_id: id, content: await getWeather.invoke(args) }));
    }
    return { text: (await bound.invoke(talk)).content };
  },
  "langchain schema": () => langchain.withStructuredOutput(Person, { method: "jsonSchema" }).invoke(prompt),
  async "langchain embeddings"() {
    const embeddings = new OpenAIEmbeddings({ configuration: { baseURL: base }, apiKey: key, model });
    return { vectors: await embeddings.embedDocuments(["a cat", "a dog"]) };
  },
  async "ai-sdk tools"() {
    const tools = { get_weather: tool({ description, inputSchema: City, execute: weather }) };
    const { text } = await generateText({ model: provider(model), prompt, tools, stopWhen: isStepCount(3), maxRetries: 0 });
    return { text };
  },
  async "ai-sdk schema"() {
    const { output } = await generateText({ model: provider(model), prompt, output: Output.object({ schema: Person }) });
    return output;
  },
  async "ai-sdk embeddings"() {
    const { embeddings } = await embedMany({ model: provider.embeddingModel(model), values: ["a cat", "a dog"] });
    return { vectors: embeddings };
  },
};
told(await ways[how]());
