// Decompresses the figures of large pages.
await Promise.all([...document.querySelectorAll('[data-packed]')].map(async place => { place.outerHTML = await unpacked(place.dataset.packed); }));
document.body.dataset.figures = 'ready';
