"""What a call is worth in a fair order: the work it causes on a GPU, in tokens."""

# A generated token occupies a GPU about twice as long as a prompt token that is computed (VTC, arXiv 2401.00588).
OUTPUT_WEIGHT = 2
# English text; only where the engine has not counted.
BYTES_PER_PROMPT_TOKEN = 4
# A body of images is large, and few tokens.
PROMPT_TOKENS_MAX = 32_768
# Most answers end long before the most that was asked for; only until the engine has counted.
USUAL_OUTPUT_TOKENS = 256


def estimated(prompt_bytes: int, output_max: int | None) -> int:
    """Before the call ran: nothing is known of cached prefixes yet."""
    output = USUAL_OUTPUT_TOKENS if output_max is None else min(output_max, USUAL_OUTPUT_TOKENS)
    return prompt_tokens(prompt_bytes) + OUTPUT_WEIGHT * output


def prompt_tokens(prompt_bytes: int) -> int:
    return min(prompt_bytes // BYTES_PER_PROMPT_TOKEN, PROMPT_TOKENS_MAX)


def done(prompt: int, cached: int, output: int) -> int:
    """By the engine's counts: a prefix that it found in its cache cost it nothing."""
    return max(0, prompt - cached) + OUTPUT_WEIGHT * output
