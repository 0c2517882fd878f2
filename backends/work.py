"""What a call is worth in a fair order: the work it causes on a GPU, in tokens."""

# A generated token occupies a GPU about twice as long as a prompt token that is computed (VTC, arXiv 2401.00588).
OUTPUT_WEIGHT = 2
# English text; only until the engine has counted.
BYTES_PER_PROMPT_TOKEN = 4
# Most answers end long before the most that was asked for; only until the engine has counted.
USUAL_OUTPUT_TOKENS = 256


def estimated(prompt_bytes: int, output_max: int | None) -> int:
    """Before the call ran: nothing is known of cached prefixes yet."""
    output = USUAL_OUTPUT_TOKENS if output_max is None else min(output_max, USUAL_OUTPUT_TOKENS)
    return prompt_bytes // BYTES_PER_PROMPT_TOKEN + OUTPUT_WEIGHT * output


def done(prompt_tokens: int, cached_tokens: int, output_tokens: int) -> int:
    """By the engine's counts: a prefix that it found in its cache cost it nothing."""
    return max(0, prompt_tokens - cached_tokens) + OUTPUT_WEIGHT * output_tokens
