"use strict";
// The page's controls. It knows no formula: every change goes to the engine, retry's own code, and what comes back is shown.
const find = (id) => document.getElementById(id);
const decoder = new TextDecoder(), encoder = new TextEncoder();
let state = JSON.parse(find("start").textContent), answer, engine, asked = false;
const mostCards = Math.max(6, state.specs.length); // a page that was made with more keeps them when it is loaded again

// system is the little of WASI that Go's runtime asks for: the time, random bytes, and a place to write the message of a panic.
function system(memory) {
  const view = () => new DataView(memory().buffer);
  const nothing = (...at) => { at.forEach((p) => view().setUint32(p, 0, true)); return 0; };
  return {
    args_sizes_get: nothing, environ_sizes_get: nothing, args_get: () => 0, environ_get: () => 0, sched_yield: () => 0,
    random_get: (p, n) => { crypto.getRandomValues(new Uint8Array(memory().buffer, p, n)); return 0; },
    clock_time_get: (clock, precision, p) => { view().setBigUint64(p, BigInt(Math.round(performance.now() * 1e6)), true); return 0; },
    poll_oneoff: (subscriptions, events, count, happened) => nothing(happened), // a sleep that ends at once
    proc_exit: (code) => { throw new Error("the engine ended with " + code); },
    fd_write: (fd, list, count, written) => {
      let text = "", bytes = 0;
      for (let i = 0; i < count; i++) {
        const size = view().getUint32(list + 8 * i + 4, true);
        text += decoder.decode(new Uint8Array(memory().buffer, view().getUint32(list + 8 * i, true), size));
        bytes += size;
      }
      console.error(text);
      view().setUint32(written, bytes, true);
      return 0;
    },
  };
}

async function start() {
  const packed = Uint8Array.from(atob(find("engine").textContent), (c) => c.charCodeAt(0));
  const code = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  const module = await WebAssembly.compile(code), imports = {};
  let instance;
  const known = system(() => instance.exports.memory);
  for (const { name } of WebAssembly.Module.imports(module)) imports[name] = known[name] || (() => 8); // no such file
  instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: imports });
  instance.exports._initialize();
  engine = instance.exports;
}

// ask has the engine answer the state.
function ask() {
  const question = encoder.encode(JSON.stringify(state));
  const at = engine.ask(question.length);
  new Uint8Array(engine.memory.buffer, at, question.length).set(question);
  const length = engine.answer();
  return JSON.parse(decoder.decode(new Uint8Array(engine.memory.buffer, engine.read(), length)));
}

// change is called after the state was changed; many changes between two frames are one question.
function change() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    try {
      update();
      remember();
    } catch (error) {
      fail("The engine failed: " + error.message + ". Load the page again.");
    }
  });
}

// update has the state answered and shown. A spec takes the form that the engine gives it.
function update() {
  answer = ask();
  state.tasks = answer.tasks;
  state.specs.forEach((spec, i) => {
    const shown = answer.specs[i];
    delete spec.move;
    if (!shown.error) Object.assign(spec, { backoff: shown.backoff, jitter: shown.jitter });
  });
  show();
}

function fail(text) {
  find("notice").textContent = text;
  find("notice").hidden = false;
}

// The fragment holds the settings: b, j, n, l and t once for each policy.
function remember() {
  const all = new URLSearchParams({ tasks: state.tasks, seed: state.seed });
  for (const s of state.specs) {
    all.append("b", s.backoff);
    all.append("j", s.jitter);
    all.append("n", s.attempts);
    all.append("l", s.label);
    all.append("t", s.budget_ms);
  }
  history.replaceState(null, "", "#" + all);
}

const whole = (text, least, most, otherwise) => (/^\d{1,15}$/.test(text || "") ? Math.min(Math.max(+text, least), most) : otherwise);

function recall() {
  const all = new URLSearchParams(location.hash.slice(1)), curves = all.getAll("b").slice(0, mostCards);
  if (!curves.length) return;
  const [jitters, attempts, labels, budgets] = ["j", "n", "l", "t"].map((name) => all.getAll(name));
  state = {
    tasks: whole(all.get("tasks"), 1, 10000, state.tasks),
    seed: seedOf(all.get("seed")) || state.seed,
    specs: curves.map((backoff, i) => ({
      backoff, jitter: jitters[i] || "", attempts: whole(attempts[i], 2, 1000, 9), label: labels[i] || "", budget_ms: whole(budgets[i], 0, 1e15, 0),
    })),
  };
}

// seedOf is a seed as the engine takes it, a text: not every one fits a number here.
const seedOf = (text) => (/^\d{1,20}$/.test(text || "") && BigInt(text) < 2n ** 64n ? String(BigInt(text)) : "");

function show() {
  const cards = find("cards");
  while (cards.children.length > state.specs.length) cards.lastElementChild.remove();
  while (cards.children.length < state.specs.length) cards.append(newCard());
  state.specs.forEach((spec, i) => fill(cards.children[i], spec, answer.specs[i], i));
  slider(find("tasks"), state.tasks, find("tasks-value"), String(state.tasks));
  const least = Math.min(...state.specs.map((s) => s.attempts)), most = Math.max(...state.specs.map((s) => s.attempts));
  slider(find("attempts"), most, find("attempts-value"), least === most ? String(most) : least + " to " + most);
  put(find("seed"), state.seed);
  find("add").disabled = state.specs.length >= mostCards;
}

// put sets a field unless somebody is writing in it.
function put(field, value) {
  if (field !== document.activeElement && field.value !== String(value)) field.value = value;
}

// slider sets one unless somebody is moving it: what it shows is rounded, and would throw it back.
function slider(input, value, output, text) {
  if (input.max && value > +input.max && input.dataset.grows !== undefined) input.max = value;
  put(input, value);
  output.textContent = text;
  input.setAttribute("aria-valuetext", text);
}

function newCard() {
  const card = find("card").content.cloneNode(true).firstElementChild, spec = () => state.specs[[...card.parentNode.children].indexOf(card)];
  const part = (name) => card.querySelector("." + name);
  const turn = (changes) => { Object.assign(spec(), { label: "" }, changes); change(); };
  for (const [name, choices] of [["curve", answer.curves], ["jitter-kind", answer.jitters]]) {
    part(name).append(...choices.map((c) => new Option(c.name, c.spec)));
  }
  part("curve").addEventListener("change", (e) => turn({ backoff: e.target.value, jitter: "" }));
  part("jitter-kind").addEventListener("change", (e) => turn({ jitter: e.target.value }));
  part("backoff").addEventListener("input", (e) => turn({ backoff: e.target.value }));
  part("jitter").addEventListener("input", (e) => turn({ jitter: e.target.value }));
  part("sliders").addEventListener("input", (e) => {
    const { index, role } = e.target.dataset;
    if (role === "attempts") return turn({ attempts: +e.target.value });
    turn({ move: { index: +index, place: role === "none" ? 0.5 : e.target.value / 100, none: role === "none" && e.target.checked } });
  });
  card.querySelector("form").addEventListener("submit", (e) => e.preventDefault());
  part("remove").addEventListener("click", () => {
    if (state.specs.length < 2) return;
    state.specs.splice(state.specs.indexOf(spec()), 1);
    card.remove();
    change();
    find("add").focus();
  });
  return card;
}

function fill(card, spec, shown, i) {
  const part = (name) => card.querySelector("." + name), wrong = part("error");
  put(part("backoff"), spec.backoff);
  put(part("jitter"), spec.jitter);
  wrong.hidden = !shown.error;
  wrong.textContent = shown.error;
  part("picture-box").classList.toggle("stale", !!shown.error);
  part("figures").classList.toggle("stale", !!shown.error);
  part("remove").hidden = state.specs.length < 2;
  part("remove").setAttribute("aria-label", "Remove " + spec.backoff);
  card.setAttribute("aria-label", "Policy " + (i + 1) + ": " + spec.backoff);
  if (shown.error) return;
  choose(part("curve"), shown.curve);
  choose(part("jitter-kind"), shown.jitter_kind);
  fillSliders(part("sliders"), spec, shown.parameters);
  part("command").textContent = shown.command;
  const svg = new DOMParser().parseFromString(shown.svg, "image/svg+xml").documentElement;
  part("picture-box").replaceChildren(document.importNode(svg, true));
  part("figures").tBodies[0].replaceChildren(...shown.figures.map((f) => row([f.name, f.value], "th")));
  part("retries").tBodies[0].replaceChildren(...shown.retries.map((r) => row(r, "td")));
}

function choose(select, name) {
  [...select.options].forEach((o) => { o.selected = o.text === name; });
}

function row(texts, first) {
  return make("tr", {}, ...texts.map((text, i) => make(i ? "td" : first, {}, text)));
}

// fillSliders makes new sliders only where there are others than before: one that is being moved must stay.
function fillSliders(box, spec, parameters) {
  const names = parameters.map((p) => p.name).join();
  if (box.dataset.names !== names) {
    box.dataset.names = names;
    box.replaceChildren(...parameters.map((p, i) => newSlider(p.name, i, p.optional, 0, 100)), newSlider("attempts", "attempts", false, 2, 100));
  }
  parameters.forEach((p, i) => {
    const input = box.children[i].querySelector("[type=range]"), none = box.children[i].querySelector("[type=checkbox]");
    const off = p.optional && p.value === "none";
    slider(input, Math.round(p.place * 100), box.children[i].querySelector("output"), p.value);
    input.disabled = off;
    if (none) none.checked = off;
  });
  const last = box.lastElementChild;
  slider(last.querySelector("input"), spec.attempts, last.querySelector("output"), String(spec.attempts));
}

const make = (kind, properties, ...children) => {
  const element = Object.assign(document.createElement(kind), properties);
  element.append(...children);
  return element;
};
let sliders = 0;

function newSlider(name, index, optional, least, most) {
  const id = "slider-" + sliders++, input = make("input", { type: "range", min: least, max: most, id });
  Object.assign(input.dataset, index === "attempts" ? { role: "attempts", grows: "" } : { index, role: "place" });
  const box = make("div", { className: "slider" }, make("label", { htmlFor: id }, name), make("output", { htmlFor: id, ariaLive: "off" }), input);
  if (optional) {
    const none = make("input", { type: "checkbox", ariaLabel: "no " + name });
    Object.assign(none.dataset, { index, role: "none" });
    box.firstElementChild.after(make("label", { className: "none" }, none, " none"));
  }
  return box;
}

function listen() {
  find("common").addEventListener("submit", (e) => e.preventDefault());
  find("tasks").addEventListener("input", (e) => { state.tasks = +e.target.value; change(); });
  find("attempts").addEventListener("input", (e) => {
    state.specs.forEach((s) => Object.assign(s, { attempts: +e.target.value, label: "" }));
    change();
  });
  find("seed").addEventListener("input", (e) => {
    const seed = seedOf(e.target.value);
    if (seed) { state.seed = seed; change(); }
  });
  find("add").addEventListener("click", () => {
    state.specs.push({ ...state.specs.at(-1), label: "" });
    change();
  });
  // What was written is put into its canonical form when the field is left.
  document.addEventListener("focusout", change);
  window.addEventListener("hashchange", () => { recall(); change(); });
}

if (typeof WebAssembly !== "object" || typeof DecompressionStream !== "function") {
  fail("The sliders need a browser with WebAssembly and DecompressionStream (any of 2023 or later). The picture is the one that the page was made with.");
} else {
  start().then(() => {
    recall();
    const first = [...find("cards").children];
    find("cards").replaceChildren();
    try {
      update();
    } catch (error) {
      find("cards").replaceChildren(...first);
      throw error;
    }
    listen();
    find("common").hidden = false;
    document.body.dataset.ready = "";
  }).catch((error) => fail("The sliders do not work here: " + error.message));
}
