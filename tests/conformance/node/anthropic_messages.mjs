// @anthropic-ai/sdk on /v1/messages: prints the events, the final message, a count, or the error that it raised.
import Anthropic from "@anthropic-ai/sdk";
import { asked, told } from "./talk.mjs";

const { base, key, ask, how } = await asked();
const client = new Anthropic({ baseURL: base, apiKey: key, maxRetries: 0 });
const events = [];
try {
  if (how === "whole") {
    told({ message: await client.messages.create(ask) });
  } else if (how === "count") {
    told(await client.messages.countTokens(ask));
  } else if (how === "models") {
    const names = [];
    for await (const model of client.models.list(ask)) names.push(model.id);
    told({ names });
  } else if (how === "helper") {
    const stream = client.messages.stream(ask);
    stream.on("streamEvent", (event) => events.push(event.type));
    told({ message: await stream.finalMessage(), events });
  } else {
    let text = "";
    for await (const event of await client.messages.create({ ...ask, stream: true })) {
      events.push(event.type);
      if (event.type === "content_block_delta") text += event.delta.text ?? "";
    }
    told({ events, text });
  }
} catch (error) {
  told({ events, error: { name: error.constructor.name, status: error.status, type: error.type, message: error.message } });
}
