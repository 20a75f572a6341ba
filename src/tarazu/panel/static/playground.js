// The playground in one page: messages are sent and answered without leaving it, and the browser keeps the conversation
// for this tab and this person. Without this script the page does the same by its forms.
"use strict";

const SECOND_MS = 1_000;
const WORD_BYTES = 16;
const OF_THE_PAGE = new Set(["csrf", "turn"]);

const ask = document.getElementById("ask");
const turns = document.getElementById("turns");
const problem = document.getElementById("problem");
const place = `playground ${ask?.dataset.person}`;
let isAsking = false;
let sentBefore = null;

function written() {
  return [...new FormData(ask)].filter(([name]) => !OF_THE_PAGE.has(name));
}

function keep(fields = written()) {
  try {
    sessionStorage.setItem(place, JSON.stringify(fields));
  } catch {
    // The browser has no room, or keeps nothing: then this page alone has it.
  }
}

function kept() {
  try {
    return new Map(JSON.parse(sessionStorage.getItem(place)));
  } catch {
    return new Map();
  }
}

function said(conversation) {
  return JSON.parse(conversation || "[]");
}

// Sends a form, and reads the page that answers it. Where that is the door, it is opened, and leads back here.
async function answerOf(address, fields, signal) {
  const answer = await fetch(address, { method: "POST", body: new URLSearchParams(fields), signal });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!page.getElementById("ask") && answer.redirected) {
    location.assign(answer.url);
    return new Promise(() => {});
  }
  return page;
}

function tell(text) {
  const notice = document.createElement("p");
  notice.className = "notice bad";
  notice.setAttribute("role", "alert");
  notice.textContent = text;
  problem.replaceChildren(notice);
}

// What another page than the playground has to say: what stands ready in it unseen, and its buttons, are not part of it.
function shownOf(page) {
  const main = page.querySelector("main");
  main?.querySelectorAll("[hidden], .actions, button, select, form").forEach((part) => part.remove());
  return main?.textContent.replace(/\s+/g, " ").trim();
}

// Takes over what the page says that came, from this turn on.
function take(page, from) {
  if (!page.getElementById("ask")) return tell(shownOf(page) || ask.dataset.lost);
  for (const part of ["carried", "problem", "samples"]) {
    document.getElementById(part).innerHTML = page.getElementById(part).innerHTML;
  }
  for (const part of document.querySelectorAll("[data-fresh]")) {
    const fresh = page.getElementById(part.id);
    if (fresh) part.innerHTML = fresh.innerHTML;
  }
  document.getElementById("last")?.removeAttribute("id");
  turns.replaceChildren(...[...turns.children].slice(0, from), ...[...page.querySelectorAll("#turns > li")].slice(from));
  turns.hidden = turns.children.length === 0;
  ask.querySelector('label[for="prompt"]').textContent = page.querySelector('label[for="prompt"]').textContent;
  offerCopying();
  offerCopyingTurns();
}

function offerCopyingTurns() {
  for (const button of document.querySelectorAll("button[data-copy-turn][hidden]")) {
    offerToCopy(button, () => said(ask.elements.conversation.value)[button.dataset.copyTurn].content);
  }
}

// A message that is sent again as it was goes by the same word, and is charged once. Any other has a word of its own.
function nameMessage() {
  const message = JSON.stringify(written());
  if (sentBefore !== null && sentBefore !== message) {
    const bytes = [...crypto.getRandomValues(new Uint8Array(WORD_BYTES))];
    ask.elements.turn.value = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
  sentBefore = message;
}

function wait(controller) {
  const pending = document.getElementById("asking").content.cloneNode(true);
  pending.querySelector(".said").textContent = ask.elements.prompt.value;
  pending.querySelector("button").addEventListener("click", () => controller.abort());
  const [seconds, waiting] = [pending.querySelector(".seconds"), pending.lastElementChild];
  turns.append(pending);
  turns.hidden = false;
  waiting.scrollIntoView({ block: "nearest" });
  const numbers = new Intl.NumberFormat(document.documentElement.lang);
  const begun = Date.now();
  return setInterval(() => {
    seconds.textContent = numbers.format(Math.floor((Date.now() - begun) / SECOND_MS));
  }, SECOND_MS);
}

async function send() {
  if (isAsking) return;
  isAsking = true;
  nameMessage();
  const [before, controller] = [turns.children.length, new AbortController()];
  const clock = wait(controller);
  keep();
  try {
    take(await answerOf(ask.action, new FormData(ask), controller.signal), before);
    if (said(ask.elements.conversation.value).length > before) {
      sentBefore = null;
      ask.elements.prompt.value = "";
      document.getElementById("last").scrollIntoView({ block: "start" });
    }
    keep();
  } catch (fault) {
    if (fault.name !== "AbortError" && !(fault instanceof TypeError)) throw fault;
    tell(fault.name === "AbortError" ? ask.dataset.stopped : ask.dataset.lost);
  } finally {
    clearInterval(clock);
    turns.querySelectorAll(".pending").forEach((line) => line.remove());
    turns.hidden = turns.children.length === 0;
    isAsking = false;
    ask.elements.prompt.focus({ preventScroll: true });
  }
}

// Puts back what was kept, where this page knows less: after Back, a reload, another page, another language, a new session.
async function restore() {
  const fields = kept();
  const conversation = fields.get("conversation");
  if (said(conversation).length > turns.children.length) {
    const known = [...new FormData(ask)].filter(([name]) => OF_THE_PAGE.has(name));
    take(await answerOf(ask.dataset.takeUp, [...known, ["conversation", conversation]]), 0);
  }
  if (new URLSearchParams(location.search).has("model")) fields.delete("model");
  for (const [name, value] of fields) {
    const field = ask.elements[name];
    if (!value || name === "conversation" || (field.options && ![...field.options].some((it) => it.value === value))) continue;
    field.value = value;
    const folded = field.closest("details");
    if (folded) folded.open = true;
  }
}

function start() {
  ask.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  ask.addEventListener("input", () => keep());
  ask.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.id === "prompt") ask.requestSubmit();
  });
  document.querySelector("[data-new]").addEventListener("click", () => {
    keep(written().filter(([name]) => name !== "conversation" && name !== "prompt"));
  });
  document.getElementById("code").addEventListener("toggle", async (event) => {
    if (!event.target.open) return;
    const page = await answerOf(ask.dataset.takeUp, new FormData(ask));
    document.getElementById("samples").innerHTML = page.getElementById("samples").innerHTML;
    offerCopying();
  });
  for (const hint of document.querySelectorAll("[data-script]")) hint.hidden = false;
  offerCopyingTurns();
  restore().catch(() => tell(ask.dataset.lost));
}

if (ask) start();
