// Checks every two seconds whether the page has changed, and replaces it.
(() => {
  let tag = document.currentScript.dataset.tag;
  // Elements by their section and their place in it, so that a section that is new moves none of another.
  const placed = (selector) => {
    const counts = new Map();
    return [...document.querySelectorAll(selector)].map((element) => {
      const section = element.closest('section[id]')?.id ?? '';
      const at = counts.get(section) ?? 0;
      counts.set(section, at + 1);
      return [`${section}/${at}`, element];
    });
  };
  const orderOf = (table) => {
    const head = table.querySelector('th[aria-sort]');
    return head ? [head.textContent, head.getAttribute('aria-sort')] : null;
  };
  // What a reader has set: open parts, the order of tables, how far boxes are scrolled, where the focus is.
  const keep = () => {
    const open = new Map(placed('details').map(([place, details]) => [place, details.open]));
    const sorted = new Map(placed('table.sortable').map(([place, table]) => [place, orderOf(table)]));
    const boxes = placed('.wrap, pre').map(([place, box]) => [place, [box.scrollLeft, box.scrollTop]]);
    const scrolled = new Map(boxes);
    const focused = placed('a, summary, th, .wrap').find(([, element]) => element === document.activeElement);
    const [x, y] = [scrollX, scrollY];
    return () => {
      for (const [place, details] of placed('details')) details.open = open.get(place) ?? details.open;
      for (const [place, table] of placed('table.sortable')) {
        const [name, order] = sorted.get(place) ?? [];
        const head = [...table.querySelectorAll('th')].find((head) => head.textContent === name);
        // The first click sorts upwards, the second downwards.
        if (head) head.click();
        if (head && order === 'descending') head.click();
      }
      for (const [place, box] of placed('.wrap, pre')) {
        [box.scrollLeft, box.scrollTop] = scrolled.get(place) ?? [0, 0];
      }
      const again = placed('a, summary, th, .wrap').find(([place]) => place === focused?.[0]);
      if (again) again[1].focus({ preventScroll: true });
      scrollTo(x, y);
    };
  };
  const show = (text) => {
    const page = new DOMParser().parseFromString(text, 'text/html');
    page.getElementById('runner-live')?.remove();
    const restore = keep();
    document.title = page.title;
    document.body.replaceChildren(...page.body.childNodes);
    // Scripts in inserted HTML do not run; the existing one is notified.
    document.dispatchEvent(new Event('report-changed'));
    restore();
  };
  const look = async () => {
    try {
      const answer = await fetch(location.pathname, { cache: 'no-store', headers: { 'If-None-Match': tag } });
      if (answer.status === 200) {
        tag = answer.headers.get('ETag');
        show(await answer.text());
      }
      document.documentElement.removeAttribute('data-lost');
    } catch {
      document.documentElement.setAttribute('data-lost', '');
    }
    setTimeout(look, 2000);
  };
  setTimeout(look, 2000);
})();
