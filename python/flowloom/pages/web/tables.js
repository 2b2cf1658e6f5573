// Sorts tables by a click on a header, and filters their rows by words.
for (const table of document.querySelectorAll('.wide > table')) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  if (rows.length < 2) continue;
  const number = text => parseFloat(text.replace(/[  ]/g, ''));
  heads.forEach((head, i) => {
    head.classList.add('sorts');
    head.tabIndex = 0;
    const sort = () => {
      const down = head.classList.contains('up');
      heads.forEach(h => { h.classList.remove('up', 'down'); h.removeAttribute('aria-sort'); });
      head.classList.add(down ? 'down' : 'up');
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const texts = new Map(rows.map(row => [row, row.cells[i].textContent]));
      const numeric = rows.every(row => texts.get(row) === '-' || !isNaN(number(texts.get(row))));
      const order = (a, b) => numeric ? (number(a) || 0) - (number(b) || 0) : a.localeCompare(b);
      rows.sort((a, b) => (down ? -1 : 1) * order(texts.get(a), texts.get(b))).forEach(row => body.append(row));
    };
    head.onclick = sort;
    head.onkeydown = event => { if (event.key === 'Enter') sort(); };
  });
  const filter = document.createElement('input');
  const words = {placeholder: 'rows that contain …', ariaLabel: 'filter the rows of the table'};
  Object.assign(filter, {className: 'filter', type: 'search', ...words});
  filter.oninput = () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach(row => { const text = row.textContent.toLowerCase(); row.hidden = !wanted.every(word => text.includes(word)); });
  };
  table.parentElement.before(filter);
}
