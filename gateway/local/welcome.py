"""What a newcomer reads when everything runs: where it is, the key, and how to call it."""

import json

from rich.console import Console

from gateway.local.up import Running


def print_welcome(running: Running, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_facts(running)))
        return
    console = Console(highlight=False, soft_wrap=True)
    proof, new = running.proof, running.newcomers
    if proof.answer is None:
        console.print(f"\nEverything runs. No completion was made: {proof.why_not}", markup=False)
    else:
        console.print(f"\n{proof.model} answered through the gateway in {proof.seconds:.1f} s: “{proof.answer}”", markup=False)
    console.print(f"\n  Base URL   {running.base_url}\n  API key    {new.demo_key}", markup=False)
    console.print("             of the demo account, on the Free plan: 60 requests a day")
    console.print(f"  Console    {running.base_url.removesuffix('/v1')}", markup=False)
    for email, password in ((new.demo_email, new.demo_password), (new.admin_email, new.admin_password)):
        if password:
            console.print(f"             {email} / {password}", markup=False)
    if new.admin_password or new.demo_password:
        console.print("             shown this once")
    if running.stripe_url is not None:
        console.print(
            f"  Billing    {running.stripe_url} stands in for Stripe, where 4242 4242 4242 4242 pays;\n"
            "             `.venv/bin/faregate subscriptions checkout demo pro` prints a page to buy Pro on",
            markup=False,
        )
    print(f"\n{_curl(running)}\n\n{_snippet(running)}\n\n`make status`, `make logs` and `make down` do what they say.")


def _facts(running: Running) -> dict[str, str | None]:
    return {
        "base_url": running.base_url,
        "api_key": running.newcomers.demo_key,
        "model": running.proof.model,
        "answer": running.proof.answer,
        "admin_email": running.newcomers.admin_email,
        "admin_password": running.newcomers.admin_password,
        "demo_email": running.newcomers.demo_email,
        "demo_password": running.newcomers.demo_password,
        "stripe_url": running.stripe_url,
    }


def _curl(running: Running) -> str:
    body = json.dumps({"model": running.proof.model, "messages": [{"role": "user", "content": "Hello!"}]})
    headers = f"-H 'Authorization: Bearer {running.newcomers.demo_key}' -H 'Content-Type: application/json'"
    return f"curl {running.base_url}/chat/completions {headers} -d '{body}'"


def _snippet(running: Running) -> str:
    return f"""from openai import OpenAI

client = OpenAI(base_url="{running.base_url}", api_key="{running.newcomers.demo_key}")
stream = client.chat.completions.create(
    model="{running.proof.model}", messages=[{{"role": "user", "content": "Tell me a joke."}}], stream=True
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="", flush=True)"""
