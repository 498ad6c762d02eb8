// What is live, what goes on by itself, and keys. Everything can be read and done without it.
'use strict';

const trouble = document.getElementById('trouble');

function tell(text) {
  trouble.textContent = text;
  trouble.hidden = text === '';
}

// Times in the zone of the browser; without a script they are those of the server.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const exactly = new Intl.DateTimeFormat('sv-SE', {
  dateStyle: 'short', timeStyle: 'medium', timeZone: zone });
const clock = new Intl.DateTimeFormat('sv-SE', { timeStyle: 'short', timeZone: zone });
const withOffset = new Intl.DateTimeFormat('en', { timeZoneName: 'shortOffset', timeZone: zone });

function spell(format, instant) {
  const moment = new Date(instant);
  return Number.isNaN(moment.getTime()) ? null : format.format(moment);
}

function offset(instant) {
  const moment = new Date(instant);
  if (Number.isNaN(moment.getTime())) return '';
  return withOffset.formatToParts(moment).find((part) => part.type === 'timeZoneName').value;
}

function localise(root) {
  for (const time of root.querySelectorAll('time[datetime]')) {
    const instant = time.getAttribute('datetime');
    const text = spell(exactly, instant);
    if (text === null) continue;
    if (time.className === 'exact') time.textContent = text;
    else if (time.className === 'clock') time.textContent = spell(clock, instant);
    time.title = `${text} ${offset(instant)}`;
  }
  for (const strip of root.querySelectorAll('rect[data-at] title')) {
    const text = spell(clock, strip.parentNode.dataset.at);
    if (text !== null) strip.textContent = strip.textContent.replace(/^\d\d:\d\d/, text);
  }
}

localise(document);
for (const name of document.querySelectorAll('.zone b')) {
  name.textContent = `${zone} (${offset(Date.now())})`;
}

// A finger has no pointer to rest on a time: a tap shows it, and another one how long ago it was.
document.addEventListener('click', (event) => {
  const time = event.target.closest('td time[title]');
  if (!time || event.target.closest('a')) return;
  [time.textContent, time.title] = [time.title, time.textContent];
});

// The present entries of menus that scroll.
for (const entry of document.querySelectorAll('nav [aria-current]')) {
  entry.scrollIntoView({ inline: 'center', block: 'nearest' });
}

// On which sides such a menu goes on.
function note_ends(menu) {
  menu.classList.toggle('goes-back', menu.scrollLeft > 1);
  menu.classList.toggle('ends-here', menu.scrollLeft + menu.clientWidth > menu.scrollWidth - 2);
}
for (const menu of document.querySelectorAll('header nav, .tabs')) {
  menu.addEventListener('scroll', () => note_ends(menu), { passive: true });
  addEventListener('resize', () => note_ends(menu));
  note_ends(menu);
}

// The same link keeps the focus; what is pointed at, pressed or selected is left in peace.
function update(region, html) {
  const selection = document.getSelection();
  const inUse = '.chart:hover, .graph:hover, .menu[open], :active';
  const isBusy = region.querySelector(inUse) !== null ||
    (!selection.isCollapsed && region.contains(selection.anchorNode));
  if (isBusy) return;
  const focused = region.contains(document.activeElement)
    ? document.activeElement.getAttribute('href') : null;
  const before = region.querySelector('[data-state]');
  region.innerHTML = html;
  localise(region);
  const after = region.querySelector('[data-state]');
  if (before && after && before.dataset.state !== after.dataset.state) {
    location.reload();
  } else if (focused !== null) {
    for (const link of region.querySelectorAll('a')) {
      if (link.getAttribute('href') === focused) { link.focus(); break; }
    }
  }
}

// A browser gives a stream up for good when a proxy answers in the place of a server that is away.
// Then the page asks for itself until the server answers, or wants a sign-in.
async function wait_for_server() {
  for (let pause = 1000; ; pause = Math.min(2 * pause, 15000)) {
    await new Promise((done) => setTimeout(done, pause));
    try {
      const answer = await fetch(location.href, { method: 'HEAD' });
      if (answer.status === 401) location.reload();
      if (answer.ok) return;
    } catch { /* not yet */ }
  }
}

// Only while the page is seen: a browser has few connections to one server.
function follow(region) {
  let source = null;
  const open = () => {
    source = new EventSource(region.dataset.live);
    source.onmessage = (event) => { tell(''); update(region, event.data); };
    source.addEventListener('trouble', (event) => tell(event.data));
    source.onerror = async () => {
      const failed = source;
      tell('The server does not answer. This page tries again.');
      if (failed.readyState !== EventSource.CLOSED) return;
      await wait_for_server();
      if (source === failed) open();
    };
  };
  const check = () => {
    if (document.hidden && source) { source.close(); source = null; }
    if (!document.hidden && !source) open();
  };
  document.addEventListener('visibilitychange', check);
  check();
}

for (const region of document.querySelectorAll('[data-live]')) follow(region);

// An operation that has steps left.
for (const form of document.querySelectorAll('form[data-automatic]')) {
  const timer = setTimeout(() => form.requestSubmit(), 300);
  document.addEventListener('submit', () => clearTimeout(timer));
}

// A page that could not be made.
if (document.querySelector('[data-retry]')) {
  const timer = setInterval(async () => {
    try {
      const answer = await fetch(location.href, { method: 'HEAD' });
      if (answer.status >= 500) return;
      clearInterval(timer);
      location.reload();
    } catch { /* not yet */ }
  }, 1000);
}

// A button that copies a block. Without TLS a browser has no clipboard, but copies a selection.
async function copy(block) {
  try {
    await navigator.clipboard.writeText(block.textContent);
    return true;
  } catch {
    document.getSelection().selectAllChildren(block);
    const isCopied = document.execCommand('copy');
    document.getSelection().removeAllRanges();
    return isCopied;
  }
}

for (const block of document.querySelectorAll('pre[data-copy]')) {
  const frame = document.createElement('div');
  frame.className = 'copied';
  block.replaceWith(frame);
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    button.textContent = await copy(block) ? 'Copied' : 'Not copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  frame.append(block, button);
}

// One box for all of a table.
for (const cell of document.querySelectorAll('th.check')) {
  const all = document.createElement('input');
  all.type = 'checkbox';
  all.setAttribute('aria-label', 'choose all that are shown');
  all.addEventListener('change', () => {
    for (const box of cell.closest('table').querySelectorAll('td.check input')) {
      box.checked = all.checked;
    }
  });
  cell.append(all);
}

// A menu closes when something else is meant.
document.addEventListener('click', (event) => {
  for (const menu of document.querySelectorAll('.menu[open]')) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  for (const menu of document.querySelectorAll('.menu[open]')) {
    menu.open = false;
    menu.querySelector('summary').focus();
  }
});

// j and k go along the rows, / to the filter.
document.addEventListener('keydown', (event) => {
  if (event.target.matches('input, textarea, select') || event.ctrlKey || event.metaKey ||
      event.altKey) return;
  if (event.key === '/') {
    const filters = document.querySelector('details.filters');
    if (!filters) return;
    event.preventDefault();
    filters.open = true;
    filters.querySelector('input[name="task"]').focus();
  } else if (event.key === 'j' || event.key === 'k') {
    const links = [...document.querySelectorAll('td.first a')];
    const at = links.indexOf(document.activeElement);
    const next = links[event.key === 'j' ? at + 1 : Math.max(at - 1, 0)];
    if (next) next.focus();
  }
});
