// Asks the entry node for the status of all nodes once per second, and shows it. All text is inserted as text, never as
// HTML: clients choose their names.
'use strict';

const EVERY = 1000; // ms between two requests
const SLOWEST = 30000; // largest interval in ms, while there is no answer
const PATIENCE = 10000; // longest time of an answer, in ms
const HISTORY = 180; // largest number of rates in a curve
const RECENT = 30; // seconds for which a handed-back request is shown
const SHORT = 60; // number of rates for which a new curve has room
const PLACES = { waiting: 'waiting', running: 'running', leaving: 'being handed back' };

let token = null; // in memory only
let wait = EVERY;
let timer = null;
let asking = false;
const known = new Map(); // by target: the last status of a node, and its rates
const curves = { kept: [], moved: [] };

// --- Changes since the last answer

/** The rates of a node, in bytes per second of its own clock. Counts from before a restart are ignored. */
function rates(node) {
  const before = known.get(node.target);
  if (!node.load) return before && { ...before, kept: 0, moved: 0, answers: false };
  const now = {
    up: number(node.up_seconds), folded: number(node.bytes.folded), sent: number(node.bytes.sent), answers: true,
  };
  const same = before && now.up >= before.up;
  const passed = now.up - (same ? before.up : 0);
  const rate = (name) => (passed > 0 ? Math.max(0, now[name] - (same ? before[name] : 0)) / passed : null);
  now.kept = before ? rate('folded') ?? before.kept : null;
  now.moved = before ? rate('sent') ?? before.moved : null;
  return now;
}

function remember(cluster) {
  for (const node of cluster.nodes) {
    const now = rates(node);
    if (now) known.set(node.target, now);
  }
  const sum = (name) => [...known.values()].reduce((all, one) => all + number(one[name]), 0);
  const first = [...known.values()].every((one) => one.kept === null);
  if (!first) {
    for (const name of ['kept', 'moved']) {
      curves[name].push(sum(name));
      if (curves[name].length > HISTORY) curves[name].shift();
    }
  }
  return { kept: sum('folded'), moved: sum('sent') };
}

// --- Rows

function nodeRow(node) {
  const name = { text: `${node.target}`, under: node.address, class: 'long' };
  const load = node.load;
  const silent = node.silent_seconds;
  if (!load) {
    const heard = typeof silent === 'number' ? `last heard of ${seconds(silent)} ago` : 'not heard of yet';
    const state = { text: 'does not answer', class: 'bad', under: `${heard}; ${node.error ?? ''}`, wide: true };
    return { key: `${node.target} silent`, cells: [name, state] };
  }
  const mine = Math.max(0, number(load.cpu) - number(load.others));
  const cpu = {
    text: percent(load.cpu),
    bar: [['active', mine], ['others', load.others]],
    says: `${percent(load.cpu)} used: active requests ${percent(mine)}, everything else ${percent(load.others)}`,
  };
  const [available, total] = load.memory ?? [];
  const memory = load.memory
    ? { text: percent(1 - available / Math.max(1, total)), under: `of ${bytes(total)}` }
    : { text: '–', class: 'quiet' };
  const moving = known.get(node.target) ?? {};
  const rate = (value) => (value === null || value === undefined ? '–' : `${bytes(value)}/s`);
  return {
    key: `${node.target}`,
    cells: [
      name,
      { text: number(load.cores) > 0 ? 'answers' : 'takes no requests', under: `up ${seconds(node.up_seconds)}` },
      cpu,
      { text: number(load.cores).toFixed(1) },
      { text: seconds(load.queued) },
      { text: `${number(load.running)}` },
      { text: `${Math.max(0, number(load.active) - number(load.running))}` },
      memory,
      { text: typeof load.io === 'number' ? percent(load.io) : '–' },
      { text: rate(moving.kept), under: bytes(node.bytes.folded) },
      { text: rate(moving.moved), under: bytes(node.bytes.sent) },
    ],
  };
}

function requestRow(node, request) {
  const share = number(request.folded) / Math.max(1, number(request.bytes));
  const done = `${bytes(request.folded)} of ${bytes(request.bytes)}`;
  return {
    key: `${node.target}.${request.number}`,
    age: number(request.age_seconds),
    cells: [
      { text: `${node.target}.${request.number}` },
      { text: request.kernel },
      { text: `node ${node.target}`, under: PLACES[request.state] ?? request.state },
      { text: done, bar: [['active', share]], says: `${percent(share)} folded` },
      { text: request.principal, class: 'long' },
      { text: request.asker ?? '–', class: 'long' },
      { text: seconds(request.age_seconds) },
    ],
  };
}

function goneRow(node, gone) {
  return {
    key: `${node.target}.${gone.number} gone`,
    ago: number(gone.ago_seconds),
    cells: [
      { text: `${node.target}.${gone.number}` },
      { text: gone.kernel },
      { text: 'at the asker', class: 'warn long wide', under: `handed back by node ${node.target}: ${gone.why}` },
      { text: number(gone.bytes) > 0 ? `${bytes(gone.bytes)} left to the asker` : 'from the next pass on' },
      { text: gone.principal, class: 'long' },
      { text: gone.asker ?? '–', class: 'long' },
      { text: `${seconds(gone.ago_seconds)} ago` },
    ],
  };
}

function kernelRows(nodes) {
  const all = new Map();
  for (const kernel of nodes.flatMap((node) => node.kernels ?? [])) {
    const sum = all.get(kernel.kernel) ?? { ended: 0, handed_back: 0, folded: 0, rates: [] };
    for (const name of ['ended', 'handed_back', 'folded']) sum[name] += number(kernel[name]);
    if (kernel.measured) sum.rates.push(number(kernel.rate));
    all.set(kernel.kernel, sum);
  }
  const speed = (rates) => {
    if (rates.length === 0) return 'not measured';
    const [least, most] = [bytes(Math.min(...rates)), bytes(Math.max(...rates))];
    return least === most ? `${least}/s` : `${least}/s to ${most}/s`;
  };
  return [...all].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, sum]) => ({
    key: name,
    cells: [
      { text: name }, { text: `${sum.ended}` }, { text: `${sum.handed_back}` }, { text: bytes(sum.folded) },
      { text: speed(sum.rates) },
    ],
  }));
}

function curve(id, sum, rates) {
  const box = at(id);
  box.querySelector('.sum').textContent = bytes(sum);
  box.querySelector('.rate').textContent = rates.length > 0 ? `${bytes(rates[rates.length - 1])}/s` : '–';
  const most = Math.max(1, ...rates);
  const room = Math.max(SHORT, rates.length);
  const x = (n) => (240 * (room - rates.length + n)) / (room - 1);
  const points = rates.map((rate, n) => `${x(n).toFixed(1)},${(39 - (37 * rate) / most).toFixed(1)}`);
  const line = points.length > 1 ? `M${points.join('L')}` : '';
  box.querySelector('.line').setAttribute('d', line);
  box.querySelector('.area').setAttribute('d', line && `${line}L240,40L${x(0).toFixed(1)},40Z`);
}

function render(cluster) {
  const sums = remember(cluster);
  const nodes = cluster.nodes;
  const answering = nodes.filter((node) => node.load);
  const active = answering.reduce((sum, node) => sum + number(node.load.active), 0);
  at('summary').textContent = `${answering.length} of ${nodes.length} nodes answer, ${active} active`
    + ` ${active === 1 ? 'request' : 'requests'}, ${new Date(1000 * number(cluster.at)).toLocaleTimeString([], { hourCycle: 'h23' })}`;
  curve('kept', sums.kept, curves.kept);
  curve('moved', sums.moved, curves.moved);
  fill(at('nodes'), nodes.map(nodeRow), 'There are no nodes.');
  const here = answering.flatMap((node) => (node.requests ?? []).map((one) => requestRow(node, one)));
  const gone = answering.flatMap((node) => (node.handed_back ?? []).map((one) => goneRow(node, one)));
  here.sort((a, b) => b.age - a.age);
  const recent = gone.filter((one) => one.ago < RECENT).sort((a, b) => a.ago - b.ago);
  fill(at('requests'), [...here, ...recent], 'No active requests.');
  at('more').hidden = active <= here.length;
  at('more').textContent = `${active - here.length} more are not listed.`;
  fill(at('kernels'), kernelRows(answering), 'No kernel was asked for yet.');
}

// --- Requests

function banner(text) {
  const place = at('banner');
  if (place.textContent !== text) place.textContent = text;
  place.hidden = text === '';
}

function askForToken(why) {
  at('cluster').hidden = true;
  at('summary').textContent = '';
  at('refusal').textContent = why;
  at('asks').hidden = false;
  at('token').value = '';
  at('token').focus();
}

async function ask() {
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  const answer = await fetch('cluster', {
    headers, cache: 'no-store', credentials: 'omit', signal: AbortSignal.timeout(PATIENCE),
  });
  const said = await answer.json().catch(() => ({ message: `it answered ${answer.status}` }));
  if (answer.ok) return said;
  throw Object.assign(new Error(said.message), { denied: answer.status === 403 });
}

async function poll() {
  if (asking || document.hidden || !at('asks').hidden) return;
  asking = true;
  clearTimeout(timer);
  try {
    const cluster = await ask();
    wait = EVERY;
    banner('');
    at('cluster').hidden = false;
    render(cluster);
  } catch (error) {
    if (error.denied) {
      wait = EVERY;
      token = null;
      banner('');
      askForToken(error.message);
    } else {
      wait = Math.min(SLOWEST, 2 * wait);
      const why = error.name === 'TimeoutError' ? `no answer in ${PATIENCE / 1000} s` : error.message;
      banner(`The entry node does not say how the cluster does (${why}). What is shown is old. Asking again in ${wait / 1000} s.`);
    }
  } finally {
    asking = false;
    timer = setTimeout(poll, wait);
  }
}

at('asks').addEventListener('submit', (event) => {
  event.preventDefault();
  const given = at('token').value.trim();
  at('token').value = '';
  if (!/^[\x21-\x7e]+$/.test(given)) {
    askForToken('A token has no spaces, and letters, digits and signs of ASCII only.');
    return;
  }
  token = given;
  at('asks').hidden = true;
  poll();
});
document.addEventListener('visibilitychange', () => { if (!document.hidden) poll(); });
poll();
