"""What an upstream API asks by the token, and how much of it a month may cost."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """Cents for a million tokens, and the cap of a calendar month (UTC) in cents."""

    prompt_cents: int
    completion_cents: int
    cap_cents: int

    def microcents(self, prompt_tokens: int, completion_tokens: int) -> int:
        """A millionth of a cent is what one token costs at a cent for a million."""
        return prompt_tokens * self.prompt_cents + completion_tokens * self.completion_cents

    def allows(self, spent_microcents: int) -> bool:
        """Another call. Those that run when the cap is met are finished: it may be passed by what `slots` calls cost."""
        return spent_microcents < self.cap_cents * 1_000_000
