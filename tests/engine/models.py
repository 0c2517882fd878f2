"""Run by vLLM's own Python: turns a GGUF file into safetensors, with two of its tokens named as a thinking model's.

The tokens are of code corpora (numbers of stars, starts of issues) and never said in a chat: the model is as before, and a
reasoning parser finds the names that it looks for.
"""

import json
import sys
from pathlib import Path

RENAMED = {"<gh_stars>": "<think>", "<issue_start>": "</think>"}


def convert(gguf: Path, folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name, dtype="bfloat16")
    # It has been read out of its quantization; what would be saved as still quantized could not be loaded.
    model.hf_quantizer = None
    del model.config.quantization_config
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    _rename(folder / "tokenizer.json")


def _rename(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in RENAMED.items():
        text = text.replace(json.dumps(old), json.dumps(new))
    tokenizer = json.loads(text)
    for token in tokenizer["added_tokens"]:
        if token["content"] in RENAMED.values():
            token["special"] = False
    file.write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
