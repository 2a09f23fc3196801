"""Conversations as transformers renders them.

chat_check.py FOLDER OUT: writes for each template of FOLDER and each conversation what `apply_chat_template` gives, or
that it refuses; and for templates with `{% generation %}` what the assistant wrote.

chat_check.py HUB CHATS OUT: writes the tokens of each conversation of a file, with the tokenizer of a folder.
"""

import json
import sys
from pathlib import Path

from transformers.utils.chat_template_utils import render_jinja_template

if len(sys.argv) == 4:
    from transformers import AutoTokenizer

    hub, chats, out = sys.argv[1:]
    tokenizer = AutoTokenizer.from_pretrained(hub)
    lines = Path(chats).read_text().splitlines()
    tokens = [
        tokenizer.apply_chat_template(json.loads(line)["messages"], add_generation_prompt=True, return_dict=False)
        for line in lines
    ]
    Path(out).write_text(json.dumps(tokens))
    sys.exit()

folder, out = map(Path, sys.argv[1:])
conversations = json.loads((folder / "conversations.json").read_text())
special = {"bos_token": "<s>", "eos_token": "</s>"}


def rendered(template, conversation, **options):
    # The keys that are null are left out by `apply_chat_template`, too.
    messages = [{k: v for k, v in message.items() if v is not None} for message in conversation["messages"]]
    try:
        texts, spans = render_jinja_template(
            [messages],
            tools=conversation.get("tools"),
            documents=conversation.get("documents"),
            chat_template=template,
            **options,
            **special,
        )
    except Exception as error:
        return {"refused": str(error)}, None
    return texts[0], spans


found = {}
for path in sorted(folder.glob("*.jinja")):
    template = path.read_text()
    for number, conversation in enumerate(conversations):
        plain, _ = rendered(template, conversation)
        prompt, _ = rendered(template, conversation, add_generation_prompt=True)
        one = {"plain": plain, "prompt": prompt}
        if "{% generation %}" in template and isinstance(plain, str):
            text, spans = rendered(template, conversation, return_assistant_tokens_mask=True)
            one["assistant"] = [text[start:end] for start, end in spans[0]]
        found[f"{path.stem} {number}"] = one
out.write_text(json.dumps(found, indent=1))
