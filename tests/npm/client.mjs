// Runs the official npm client as the tests say: one JSON object on standard input, one JSON answer on standard output.
import { readFileSync } from "node:fs";
import OpenAI from "openai";

const { baseURL, apiKey, act, model, messages, stream } = JSON.parse(readFileSync(0, "utf8"));
const client = new OpenAI({
  baseURL,
  apiKey: apiKey ?? "unused",
  maxRetries: 0,
  defaultHeaders: apiKey === null ? { Authorization: null } : {},
});

const acts = {
  complete: () => client.chat.completions.create({ model, messages, stream }),
  list: async () => (await client.models.list()).data,
  retrieve: () => client.models.retrieve(model),
};

try {
  console.log(JSON.stringify({ result: await acts[act]() }));
} catch (error) {
  const type = Object.keys(OpenAI).find((name) => OpenAI[name] === error.constructor);
  console.log(JSON.stringify({ type, status: error.status, code: error.code, message: error.message, requestID: error.requestID }));
}
