// Figures as a person reads them, and tables whose rows stay in place while their figures change.
'use strict';

const at = (id) => document.getElementById(id);

function number(value) {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let left = number(value), unit = 0;
  while (left >= 1024 && unit + 1 < units.length) { left /= 1024; unit += 1; }
  return `${unit === 0 ? Math.round(left) : left.toPrecision(left >= 1000 ? 4 : 3)} ${units[unit]}`;
}

function seconds(value) {
  const s = number(value);
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} days`;
}

const percent = (share) => `${Math.round(100 * number(share))} %`;

/** Shows rows: arrays of cells with a key each. Existing rows and cells are reused, so that a selection stays. */
function fill(table, rows, none) {
  const labels = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const old = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  if (rows.length === 0) rows = [{ key: '', cells: [{ text: none, class: 'quiet empty', wide: true }] }];
  rows.forEach(({ key, cells }, place) => {
    let row = old.get(key);
    old.delete(key);
    if (!row) {
      row = document.createElement('tr');
      row.setAttribute('role', 'row');
      row.dataset.key = key;
      cells.forEach((cell, n) => {
        const heads = n === 0 && !cell.wide;
        const made = document.createElement(heads ? 'th' : 'td');
        made.setAttribute('role', heads ? 'rowheader' : 'cell');
        if (heads) made.scope = 'row';
        // A wide one has all the columns that are left.
        if (cell.wide) made.colSpan = labels.length - n;
        if (cells.length > 1) made.dataset.label = labels[n].textContent;
        row.append(made);
      });
    }
    cells.forEach((cell, n) => show(row.cells[n], cell, labels[n]));
    if (body.rows[place] !== row) body.insertBefore(row, body.rows[place] ?? null);
  });
  old.forEach((row) => row.remove());
}

/** One cell: a text, perhaps a bar, perhaps a line beneath. */
function show(place, cell, label) {
  const wanted = ['text', 'bar', 'under'].filter((part) => cell[part] !== undefined).join(' ');
  if (place.dataset.parts !== wanted) {
    place.dataset.parts = wanted;
    place.replaceChildren(...wanted.split(' ').map((part) => {
      const made = document.createElement('span');
      made.className = part;
      if (part === 'bar') {
        made.setAttribute('role', 'img');
        made.append(...cell.bar.map(([kind]) => Object.assign(document.createElement('i'), { className: kind })));
      }
      return made;
    }));
  }
  const kind = `${label.className} ${cell.class ?? ''}`.trim();
  if (place.className !== kind) place.className = kind;
  for (const part of place.children) {
    if (part.className === 'bar') {
      part.setAttribute('aria-label', cell.says);
      cell.bar.forEach(([, share], n) => { part.children[n].style.width = `${Math.min(100, 100 * number(share))}%`; });
    } else if (part.textContent !== String(cell[part.className])) {
      part.textContent = cell[part.className];
    }
  }
}
