"""Pages in headless Chromium: how wide they are, whether their pictures and formulas have a size, what a script makes of them."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
          "--disable-component-update", "--disable-sync", "--disable-features=PaintHolding")  # fmt: skip

#: one frame after another, so that many pages need no more memory than one
_MEASURE = """
<!DOCTYPE html><meta charset="utf-8"><body><pre id="found"></pre>
<script>
const measured = (frame) => {
  const page = frame.contentDocument, root = page.documentElement;
  const shown = [...page.querySelectorAll("math,img,h1,h2")].filter(e => e.offsetParent !== null || e.tagName === "math");
  return {width: frame.clientWidth, overflow: root.scrollWidth - root.clientWidth,
    images: [...page.images].every(image => image.complete && image.naturalWidth > 0),
    flat: [...page.querySelectorAll("math")].filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 5).length,
    formulas: page.querySelectorAll("math").length, shown: shown.length, title: page.title};
};
(async () => {
  const found = [];
  for (const [source, content, width] of FRAMES) {
    const frame = document.createElement("iframe");
    frame.style = `width:${width}px;height:900px;border:0`;
    const loaded = new Promise(done => { frame.onload = done; });
    frame[source] = content;
    document.body.append(frame);
    await loaded;
    found.push(measured(frame));
    frame.remove();
  }
  document.getElementById("found").textContent = JSON.stringify(found);
})();
</script></body>
"""


#: the lowest contrast of text with what it stands on (WCAG 2): colours and opacities as they are composed, pictures aside
CONTRAST = """
<pre id="found"></pre><script>
const numbers = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
const over = (top, below) => { const a = top[3]; return [0, 1, 2].map(k => a * top[k] + (1 - a) * below[k]).concat(1); };
const light = (c) => { const [r, g, b] = c.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b; };
const chain = (e) => e ? [...chain(e.parentElement), e] : [];
const contrast = (e) => {
  let below = [255, 255, 255, 1], opacity = 1;
  for (const each of chain(e)) { const style = getComputedStyle(each); below = over(numbers(style.backgroundColor), below); opacity *= Number(style.opacity); }
  const ink = numbers(getComputedStyle(e).color); ink[3] *= opacity;
  const [a, b] = [light(over(ink, below)), light(below)].sort((x, y) => y - x);
  return (a + .05) / (b + .05); };
document.querySelectorAll("details").forEach(e => { e.open = true; });
const texts = [...document.querySelectorAll("body *:not(script,style,#found)")].filter(e => e.checkVisibility() &&
  [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()));
const found = texts.map(e => [contrast(e), e.tagName + ": " + e.textContent.trim().slice(0, 40)]).sort((a, b) => a[0] - b[0]);
document.getElementById("found").textContent = JSON.stringify([{texts: found.length, lowest: found[0],
  paper: getComputedStyle(document.body).backgroundColor}]);
</script></body>
"""

DARK, LIGHT = "--blink-settings=preferredColorScheme=0", "--blink-settings=preferredColorScheme=1"


def document(address: str, profile: Path, *options: str) -> str:
    """The page at an address as HTML, after its scripts have run."""
    command = [
        CHROMIUM, *_QUIET, *options, f"--user-data-dir={profile}", "--virtual-time-budget=20000",
        "--dump-dom", address,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=300).stdout


def harness(frames: list[tuple[str, str, int]]) -> str:
    """A page that measures others: ("srcdoc", HTML, width) or ("src", an address of the same origin, width)."""
    return _MEASURE.replace("FRAMES", json.dumps(frames).replace("</", "<\\/"))


def measured(address: str, profile: Path, *options: str) -> list[dict]:
    """What the page of `harness` at this address found, a dict a frame."""
    found = re.search(r'<pre id="found">(.*?)</pre>', document(address, profile, *options), re.DOTALL)
    return json.loads(unescape(found[1]))
