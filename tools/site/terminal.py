"""Blocks of kind `console` on the site: prompts, commands and output look different, and the button copies the commands alone."""

import re
from html import escape

# As test/documents has them: a command stands behind a prompt, and goes on behind a backslash or up to the end of a here-document.
PROMPT = re.compile(r"([a-z][a-z0-9-]*)?\$ ")
HEREDOC = re.compile(r"<<'?([A-Z]+)'?")
NOT_TYPED = ("^C", "…")  # a key, and what a command has printed since


def fence(source, language, css_class, options, md, **others):  # noqa: ARG001 -- superfences calls it so
    """The block as HTML."""
    shown, typed, heredoc, goes_on = [], [], "", False
    for line in source.splitlines():
        prompt = None if heredoc or goes_on else PROMPT.match(line)
        if not (prompt or heredoc or goes_on):
            shown.append(f'<span class="go">{escape(line)}</span>')
            continue
        command = line[prompt.end() :] if prompt else line
        shown.append((f'<span class="gp">{escape(prompt[0])}</span>' if prompt else "") + escape(command))
        if command not in NOT_TYPED:
            typed.append(command.split("  #")[0].rstrip())
        found = HEREDOC.search(command)
        heredoc = "" if command == heredoc else heredoc or (found[1] if found else "")
        goes_on = not heredoc and command.endswith("\\")
    kind = "highlight" if typed else "highlight no-copy"
    return f'<div class="{kind}" data-copy="{escape(chr(10).join(typed))}"><pre><span></span><code>{chr(10).join(shown)}\n</code></pre></div>'
