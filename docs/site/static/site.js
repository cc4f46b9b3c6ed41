// The search of the site: all words have to stand in a section; those in a title or a heading count more. The index is a script, not a
// request, so that the search works from files, too.
(function () {
  'use strict';
  const root = document.body.dataset.root;
  const input = document.getElementById('search');
  const found = document.getElementById('found');
  const entries = (window.searchIndex || []).map(({title, heading, address, text}) => ({
    title, heading, address, text, low: text.toLowerCase(), head: (title + ' ' + heading).toLowerCase(),
  }));

  // score is 0 for a section that lacks a word.
  function score(entry, words) {
    let sum = 0;
    for (const word of words) {
      const inHead = entry.head.includes(word);
      const inText = entry.low.split(word).length - 1;
      if (!inHead && !inText) return 0;
      sum += (inHead ? 20 : 0) + Math.min(inText, 5);
    }
    return sum;
  }

  // marked returns elements of a text in which the words are marked.
  function marked(text, words) {
    const low = text.toLowerCase();
    const out = document.createDocumentFragment();
    for (let at = 0; at < text.length;) {
      let start = text.length, length = 0;
      for (const word of words) {
        const i = low.indexOf(word, at);
        if (i >= 0 && (i < start || i === start && word.length > length)) [start, length] = [i, word.length];
      }
      out.append(text.slice(at, start));
      if (length) {
        const mark = document.createElement('mark');
        mark.textContent = text.slice(start, start + length);
        out.append(mark);
      }
      at = start + length;
    }
    return out;
  }

  // excerpt is the part of a text around the first word.
  function excerpt(entry, words) {
    const places = words.map((word) => entry.low.indexOf(word)).filter((i) => i >= 0);
    const start = Math.max(0, Math.min(...places, entry.text.length) - 60);
    const part = entry.text.slice(start, start + 180);
    return (start ? part.replace(/^\S*/, '…') : part) + (start + 180 < entry.text.length ? ' …' : '');
  }

  function show() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.replaceChildren();
    found.hidden = !words.length;
    if (!words.length) return;
    const hits = entries.map((entry) => [score(entry, words), entry]).filter(([n]) => n).sort((a, b) => b[0] - a[0]).slice(0, 30);
    for (const [, entry] of hits) {
      const link = document.createElement('a');
      link.href = root + entry.address;
      const title = document.createElement('b');
      title.append(marked(entry.title + (entry.heading ? ' › ' + entry.heading : ''), words));
      const text = document.createElement('small');
      text.append(marked(excerpt(entry, words), words));
      link.append(title, text);
      found.append(link);
    }
    if (!hits.length) {
      const nothing = document.createElement('p');
      nothing.textContent = 'No page has all of these words.';
      found.append(nothing);
    }
  }

  function hide() { found.hidden = true; }

  // move goes up or down in the list of what was found; above its first entry is the input.
  function move(step) {
    const stops = [input, ...found.querySelectorAll('a')];
    const next = stops[stops.indexOf(document.activeElement) + step];
    if (next) next.focus();
  }

  input.addEventListener('input', show);
  input.addEventListener('focus', show);
  input.form.addEventListener('submit', (event) => {
    event.preventDefault();
    const first = found.querySelector('a');
    if (first) { hide(); location.href = first.href; }
  });
  found.addEventListener('click', hide);
  document.addEventListener('click', (event) => {
    if (!found.contains(event.target) && event.target !== input) hide();
  });
  document.addEventListener('keydown', (event) => {
    const typing = document.activeElement === input;
    if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      input.focus();
      input.select();
    } else if (event.key === 'Escape') {
      hide();
      input.blur();
    } else if (!found.hidden && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
      event.preventDefault();
      move(event.key === 'ArrowDown' ? 1 : -1);
    }
  });

  // Where the page is narrow, the list of pages begins closed.
  if (matchMedia('(max-width: 60rem)').matches) document.querySelector('nav details').open = false;
}());
