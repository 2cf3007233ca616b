"""A film as one page: a picture, a slider, a button; no network, and nothing that moves unasked."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from html import escape

__all__ = ["page_of"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Film of a solve</title>
<style>
body {{ font: 16px/1.4 system-ui, sans-serif; margin: 1rem auto; max-width: 60rem; padding: 0 1rem; color: #111; background: #fff }}
img {{ width: 100%; height: auto }}
.row {{ display: flex; gap: .75rem; align-items: center }}
input {{ flex: 1 }}
button {{ font: inherit; padding: .3rem .9rem }}
pre {{ white-space: pre-wrap; font-size: .9rem }}
</style>
</head>
<body>
<img id="frame" alt="{first}" src="{source}">
<div class="row">
<button id="play" type="button">Play</button>
<input id="at" type="range" min="0" max="{last}" value="0" aria-label="frame">
</div>
<p id="said" aria-live="polite">{first}</p>
<pre>{model}</pre>
<script>
const frames = {frames}, said = {said}, pause = {pause};
const image = document.getElementById("frame"), at = document.getElementById("at");
const words = document.getElementById("said"), play = document.getElementById("play");
let timer = null;
function show(k) {{ at.value = k; image.src = frames[k]; image.alt = said[k]; words.textContent = said[k]; }}
function stop() {{ clearInterval(timer); timer = null; play.textContent = "Play"; }}
at.addEventListener("input", () => {{ stop(); show(+at.value); }});
play.addEventListener("click", () => {{
  if (timer) {{ stop(); return; }}
  if (+at.value === frames.length - 1) show(0);
  play.textContent = "Pause";
  timer = setInterval(() => {{ if (+at.value >= frames.length - 1) stop(); else show(+at.value + 1); }}, pause);
}});
</script>
</body>
</html>
"""


def page_of(frames: Sequence[bytes], captions: Sequence[str], model: str, seconds: float) -> str:
    """frames : PNG files."""
    sources = [f"data:image/png;base64,{base64.b64encode(one).decode()}" for one in frames]
    return _PAGE.format(
        first=escape(captions[0], quote=True), source=sources[0], last=len(sources) - 1, model=escape(model),
        frames=json.dumps(sources), said=json.dumps(list(captions)).replace("<", "\\u003c"), pause=round(1000 * seconds),
    )  # fmt: skip
