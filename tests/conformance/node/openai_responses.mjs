// openai-node on /v1/responses: prints the events, the final answer, or the error that it raised.
import OpenAI from "openai";
import { asked, told } from "./talk.mjs";

const { base, key, ask, how } = await asked();
const client = new OpenAI({ baseURL: base, apiKey: key, maxRetries: 0 });
const events = [];
try {
  if (how === "whole") {
    const answer = await client.responses.create(ask);
    told({ text: answer.output_text, status: answer.status, output: answer.output });
  } else if (how === "helper") {
    const stream = client.responses.stream(ask);
    stream.on("event", (event) => events.push(event.type));
    const answer = await stream.finalResponse();
    told({ events, text: answer.output_text, status: answer.status, output: answer.output });
  } else {
    let text = "";
    for await (const event of await client.responses.create({ ...ask, stream: true })) {
      events.push(event.type);
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    told({ events, text });
  }
} catch (error) {
  told({ events, error: { name: error.constructor.name, message: error.message, status: error.status, code: error.code } });
}
