// A conversation over the same API that any client calls. The key is asked for once, lives in this page alone, and ends in an hour.
const root = document.getElementById("playground");
const [ask, how] = [document.getElementById("ask"), document.getElementById("how")];
const part = (id) => document.getElementById(id);
const said = [];
let key = null;
let running = null;

const asked = () => {
  const fields = new FormData(how);
  const system = fields.get("system").trim();
  const body = { model: fields.get("model"), messages: [...(system ? [{ role: "system", content: system }] : []), ...said] };
  if (fields.get("temperature")) body.temperature = Number(fields.get("temperature"));
  if (fields.get("max_tokens")) body.max_tokens = Number(fields.get("max_tokens"));
  if (fields.get("json")) body.response_format = { type: "json_object" };
  return body;
};

// JSON is Python but for three words, which never stand outside of strings here.
const showCode = () => {
  const body = asked();
  if (!body.messages.some((one) => one.role === "user")) body.messages.push({ role: "user", content: "Hello!" });
  const words = Object.entries(body).map(([name, value]) => `    ${name}=${JSON.stringify(value)},`).join("\n");
  part("code").textContent =
    `from openai import OpenAI\n\nclient = OpenAI(base_url="${root.dataset.base}", api_key="fare_live_...")\n` +
    `stream = client.chat.completions.create(\n${words}\n    stream=True,\n)\n` +
    `for chunk in stream:\n    print(chunk.choices[0].delta.content or "", end="", flush=True)`;
};

const bubble = (role, words) => {
  part("nothing").hidden = true;
  const made = document.createElement("div");
  made.className = `said ${role}`;
  made.textContent = words;
  part("talk").append(made);
  return made;
};

const keyOf = async () => {
  if (key) return key;
  const answer = await fetch("/app/playground/key", { method: "POST", body: new URLSearchParams({ token: new FormData(ask).get("token") }) });
  if (!answer.ok) throw new Error("The session is over. Load the page again.");
  key = (await answer.json()).key;
  return key;
};

const send = async (place) => {
  const began = performance.now();
  running = new AbortController();
  const answer = await fetch("/v1/chat/completions", {
    method: "POST", signal: running.signal,
    headers: { authorization: `Bearer ${await keyOf()}`, "content-type": "application/json" },
    body: JSON.stringify({ ...asked(), stream: true, stream_options: { include_usage: true } }),
  });
  if (!answer.ok) {
    if (answer.status === 401) key = null;
    throw new Error((await answer.json()).error.message);
  }
  showReceipt(answer.headers);
  await read(answer.body.getReader(), place, began);
};

const showReceipt = (headers) => {
  part("fare").textContent = headers.get("x-faregate-fare") ?? "–";
  part("left").textContent = headers.get("x-faregate-remaining") ?? "–";
  const link = document.createElement("a");
  link.href = `/app/requests/${headers.get("x-request-id")}`;
  link.textContent = "Show";
  part("receipt").replaceChildren(link);
};

const read = async (reader, place, began) => {
  const decoder = new TextDecoder();
  let rest = "", first = null, words = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "))?.slice(6);
      if (!data || data === "[DONE]") continue;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Error(chunk.error.message);
      const more = chunk.choices[0]?.delta.content ?? "";
      if (more && first === null) part("first").textContent = `${Math.round((first = performance.now()) - began)} ms`;
      words += more;
      place.textContent = words;
      if (chunk.usage) part("tokens").textContent = `${chunk.usage.prompt_tokens} read, ${chunk.usage.completion_tokens} written`;
    }
  }
  part("all").textContent = `${((performance.now() - began) / 1000).toFixed(2)} s`;
  said.push({ role: "assistant", content: words });
};

const setRunning = (is) => {
  part("send").disabled = is;
  part("stop").hidden = !is;
};

ask.addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = ask.elements.words;
  said.push({ role: "user", content: field.value });
  bubble("user", field.value);
  field.value = "";
  part("wrong").hidden = true;
  setRunning(true);
  const place = bubble("assistant", "");
  try {
    await send(place);
  } catch (error) {
    if (error.name === "AbortError") {
      said.push({ role: "assistant", content: place.textContent });
    } else {
      said.pop();
      place.remove();
      part("wrong").textContent = error.message;
      part("wrong").hidden = false;
    }
  }
  setRunning(false);
  showCode();
  field.focus();
});
ask.elements.words.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !part("send").disabled) {
    event.preventDefault();
    ask.requestSubmit();
  }
});
part("stop").addEventListener("click", () => running?.abort());
part("anew").addEventListener("click", () => {
  running?.abort();
  said.length = 0;
  part("talk").querySelectorAll(".said").forEach((one) => one.remove());
  part("nothing").hidden = false;
  showCode();
});
how.addEventListener("input", showCode);
how.addEventListener("submit", (event) => event.preventDefault());
showCode();
