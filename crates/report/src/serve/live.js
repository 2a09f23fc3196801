// Checks every two seconds whether the page has changed, and replaces it.
(() => {
  let tag = document.currentScript.dataset.tag;
  const show = (text) => {
    const page = new DOMParser().parseFromString(text, 'text/html');
    page.getElementById('runner-live')?.remove();
    const open = [...document.querySelectorAll('details')].map((details) => details.open);
    const [x, y] = [scrollX, scrollY];
    document.title = page.title;
    document.body.replaceChildren(...page.body.childNodes);
    document.querySelectorAll('details').forEach((details, at) => {
      if (at < open.length) details.open = open[at];
    });
    // Scripts in inserted HTML do not run; the existing one is notified.
    document.dispatchEvent(new Event('report-changed'));
    scrollTo(x, y);
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
