// openai-node on chat, text completions and embeddings: prints what came, or the error that it raised.
import OpenAI from "openai";
import { asked, told } from "./talk.mjs";

const { base, key, ask, endpoint, stream } = await asked();
const client = new OpenAI({ baseURL: base, apiKey: key, maxRetries: 0 });
const create = {
  chat: (body) => client.chat.completions.create(body),
  completions: (body) => client.completions.create(body),
  embeddings: (body) => client.embeddings.create(body),
}[endpoint];
const textOf = (choice) => choice.text ?? choice.delta?.content ?? choice.message?.content ?? "";
let text = "";
try {
  if (stream) {
    let finish = null;
    for await (const chunk of await create({ ...ask, stream: true })) {
      text += textOf(chunk.choices[0]);
      finish = chunk.choices[0].finish_reason ?? finish;
    }
    told({ text, finish });
  } else {
    const answer = await create(ask);
    told(endpoint === "embeddings" ? { vectors: answer.data.map((one) => one.embedding), usage: answer.usage }
      : { text: textOf(answer.choices[0]), finish: answer.choices[0].finish_reason, usage: answer.usage });
  }
} catch (error) {
  told({ text, error: { name: error.constructor.name, message: error.message, status: error.status, code: error.code } });
}
