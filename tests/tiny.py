"""Builds a tiny random Llama with a byte-level tokenizer on the spot, as a Hugging Face folder."""

from __future__ import annotations

from pathlib import Path

from ragtrials.llm.quiet import quiet_transformers

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A plain chat template; `with_bos=True` puts the BOS token in front of it."""

TEXT = (
    "Which river flows through the capital of France? The Seine flows through Paris, a city in Europe. "
    "Answer the question with a short phrase, using the passages below. Document 1: Berlin is the capital "
    "of Germany. It lies on the Spree and has 3,645,000 inhabitants. yes no Question: Where was he born?\n"
)
SPECIAL = ("<|pad|>", "<s>", "<|im_start|>", "<|im_end|>")


def build_tiny_model(
    folder: Path,
    *,
    text: str = TEXT,
    vocab: int = 400,
    hidden: int = 64,
    layers: int = 2,
    heads: int = 2,
    seed: int = 0,
    context: int = 2048,
    chat_template: str | None = CHATML,
    with_bos: bool = False,
    tied: bool = False,
) -> Path:
    """Write a random model and its tokenizer into `folder` and return it; fp32, about 0.2 million weights.

    Args:
        folder: Created if need be.
        text: What the tokenizer learns its merges from; any other text still encodes, byte by byte.
        vocab: Upper bound of the vocabulary (at least 260: the bytes and the special tokens).
        hidden: Width; `hidden / heads` is the size of a head.
        layers: Number of layers.
        heads: Number of attention heads.
        seed: Decides the weights.
        context: Longest sequence.
        chat_template: The template, or None for a tokenizer without one.
        with_bos: Whether the tokenizer puts `<s>` before raw text by itself, and the default template, too.
        tied: Whether the output layer has the input's embeddings.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator([text], trainer)
    if with_bos:
        backend.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", backend.token_to_id("<s>"))]
        )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<|pad|>",
        eos_token="<|im_end|>",
        bos_token="<s>" if with_bos else None,
        additional_special_tokens=["<|im_start|>"],
        padding_side="left",
    )
    if chat_template is not None:
        default = "{{ bos_token }}" + CHATML if with_bos else CHATML
        tokenizer.chat_template = default if chat_template == CHATML else chat_template

    state = torch.random.get_rng_state()  # the caller's random numbers go on as if nothing had happened
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=hidden,
            intermediate_size=2 * hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            max_position_embeddings=context,
            initializer_range=0.1,
            tie_word_embeddings=tied,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )
    torch.random.set_rng_state(state)
    with quiet_transformers():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return Path(folder)
