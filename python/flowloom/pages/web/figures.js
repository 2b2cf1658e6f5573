// Figures of large pages, which are in the page compressed.
await Promise.all([...document.querySelectorAll('[data-packed]')].map(async place => { place.outerHTML = await unpacked(place.dataset.packed); }));
document.body.dataset.figures = 'ready';
