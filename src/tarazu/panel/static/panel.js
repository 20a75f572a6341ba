// Comfort only: every page works without it. It copies, leads through charts, and keeps the figures of an open page fresh.
"use strict";

const REFRESH_MS = 15_000;
const IDLE_MS = 10 * 60_000;
const COPIED_MS = 2_000;

function offerCopying() {
  for (const button of document.querySelectorAll("button[data-copy][hidden]")) {
    offerToCopy(button, () => document.getElementById(button.dataset.copy).textContent);
  }
}

// A password can be seen while it is written; it is sent as one, so that the browser offers to keep it.
function offerRevealing() {
  for (const button of document.querySelectorAll("button[data-reveal]")) {
    const field = document.getElementById(button.dataset.reveal);
    const show = (isShown) => {
      field.type = isShown ? "text" : "password";
      button.setAttribute("aria-pressed", isShown);
    };
    button.hidden = false;
    button.addEventListener("click", () => show(field.type === "password"));
    field.form.addEventListener("submit", () => show(false));
  }
}

function offerToCopy(button, text) {
  if (!navigator.clipboard) return;
  const label = button.querySelector("span");
  const before = label.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    label.textContent = button.dataset.copied;
    setTimeout(() => (label.textContent = before), COPIED_MS);
  });
}

// Brings a text into the form in which the service compares texts (domain/search_form.py), by its tables.
function searchForm({ form, written, read, unread }) {
  const letters = new Map([...written].map((letter, place) => [letter, [...read][place]]));
  for (const letter of unread) letters.set(letter, "");
  return (text) => [...text.trim().normalize(form).toLowerCase()].map((letter) => letters.get(letter) ?? letter).join("");
}

// Of a long list of boxes those are shown that have what is written above them, and those that are chosen.
function offerNarrowing() {
  for (const field of document.querySelectorAll("input[data-narrow]")) {
    const choices = [...document.getElementById(field.dataset.narrow).querySelectorAll(".choice")];
    const read = searchForm(JSON.parse(field.dataset.searchForm));
    field.hidden = false;
    field.addEventListener("input", () => {
      const sought = read(field.value);
      for (const choice of choices) {
        choice.hidden = !read(choice.textContent).includes(sought) && !choice.querySelector(":checked");
      }
    });
    field.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  }
}

// Parts of the page that are marked are fetched anew, as long as somebody looks at it: a page that is left open must not
// keep a session alive.
function keepFresh() {
  const parts = [...document.querySelectorAll("[data-fresh]")].map((part) => part.id);
  if (parts.length === 0) return;
  let touched = Date.now();
  for (const event of ["pointermove", "keydown", "focus"]) addEventListener(event, () => (touched = Date.now()));
  setInterval(async () => {
    if (document.hidden || Date.now() - touched > IDLE_MS) return;
    const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
    if (!answer || !answer.ok || answer.redirected) return tellOld(answer?.redirected ? "over" : "lost");
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const id of [...parts, "stale"]) {
      const [now, next] = [document.getElementById(id), fresh.getElementById(id)];
      if (now && next && now.innerHTML !== next.innerHTML) now.innerHTML = next.innerHTML;
    }
  }, REFRESH_MS);
}

// Figures that could not be renewed say of when they are, and why.
function tellOld(reason) {
  for (const line of document.getElementById("stale").children) line.hidden = line.dataset.stale !== reason;
}

// Who signs out leaves nothing of a conversation in this tab.
function forgetAtSignOut() {
  addEventListener("submit", (event) => event.target.action.endsWith("/sign-out") && sessionStorage.clear());
}

// From the bar of a chart that the keyboard has reached, the arrow keys lead to the others.
function walkBars() {
  const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  addEventListener("keydown", (event) => {
    const bar = document.activeElement?.closest(".chart .place");
    if (!bar || !(event.key in steps)) return;
    const bars = [...bar.parentNode.querySelectorAll(".place")];
    const forward = document.documentElement.dir === "rtl" ? -1 : 1;
    const step = event.key.startsWith("Arrow") ? steps[event.key] * forward : steps[event.key];
    const next = bars[Math.min(bars.length - 1, Math.max(0, bars.indexOf(bar) + step))];
    bar.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
    event.preventDefault();
  });
}

// Whatever does something is sent once, however often its button is pressed; what takes its time says so.
function sendOnce() {
  const sent = new Set();
  addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || event.defaultPrevented) return;
    if (sent.has(form)) return event.preventDefault();
    sent.add(form);
    const button = form.querySelector("button[data-wait]");
    if (!button) return;
    button.setAttribute("aria-disabled", "true");
    button.textContent = button.dataset.wait;
  });
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}

offerCopying();
offerRevealing();
offerNarrowing();
keepFresh();
walkBars();
sendOnce();
forgetAtSignOut();
