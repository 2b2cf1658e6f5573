// Decompresses the library and the charts in the page, and draws the charts.
async function flowloomCharts(library, charts) {
  const url = URL.createObjectURL(new Blob([await unpacked(library)], {type: 'text/javascript'}));
  await import(url);
  const theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  const options = {renderer: 'svg', actions: {export: true, source: false, compiled: false, editor: false}, tooltip: {theme}};
  for (const [id, spec] of Object.entries(JSON.parse(await unpacked(charts)))) await vegaEmbed('#' + id, spec, options);
  document.body.dataset.charts = 'ready';
}
