"""Run by vLLM's own Python: makes a tiny model with eyes whose weights are random; it says nothing of sense, and counts true.

Built as SmolVLM is, on the small chat model's own tokenizer: an image of 56 pixels is 16 patches, which are 4 tokens of the
prompt, between tokens that say that an image begins and ends.
"""

import sys
from pathlib import Path

SEED = 20261201
PIXELS, PATCH, SHUFFLED = 56, 14, 2
TOKENS = (PIXELS // PATCH // SHUFFLED) ** 2


def make(chat_model: Path, folder: Path) -> None:
    import torch
    from transformers import AutoTokenizer, Idefics3Config, Idefics3ForConditionalGeneration, Idefics3Processor
    from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

    tokenizer = AutoTokenizer.from_pretrained(str(chat_model))
    tokenizer.add_tokens(["<global-img>", *(f"<row_{row}_col_{col}>" for row in range(1, 7) for col in range(1, 7))])
    edge = {"longest_edge": PIXELS}
    processor = Idefics3Processor(
        Idefics3ImageProcessorPil(size=edge, max_image_size=edge, do_image_splitting=True), tokenizer, image_seq_len=TOKENS
    )
    eyes = {
        "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": PIXELS,
        "patch_size": PATCH,
    }  # fmt: skip
    words = {
        "model_type": "llama", "vocab_size": len(tokenizer), "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 2048, "bos_token_id": 1,
        "eos_token_id": 2, "pad_token_id": 2,
    }  # fmt: skip
    torch.manual_seed(SEED)
    config = Idefics3Config(
        vision_config=eyes, text_config=words, image_token_id=processor.image_token_id, scale_factor=SHUFFLED,
        tie_word_embeddings=False, pad_token_id=2,
    )  # fmt: skip
    Idefics3ForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(str(folder))
    processor.save_pretrained(str(folder))


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
