"""`python -m tests.support.stripe --port 0` prints the address that it listens on."""

import argparse
import socket

import uvicorn
import uvloop

from tests.support.stripe import post
from tests.support.stripe.api import Api
from tests.support.stripe.server import build
from tests.support.stripe.world import World


async def _run(options: argparse.Namespace) -> None:
    world = World(now=options.now, seed=options.seed)
    api = Api(world)
    with socket.create_server((options.host, options.port)) as listening:
        host, port = listening.getsockname()[:2]
        world.address = f"http://{host}:{port}"
        if options.endpoint:
            _listen(api, options.endpoint, options.secret)
        print(f"listening on {world.address}", flush=True)
        config = uvicorn.Config(build(api), log_level="warning", access_log=False)
        await uvicorn.Server(config).serve(sockets=[listening])


def _listen(api: Api, url: str, secret: str) -> None:
    """An endpoint whose secret is known beforehand; signed by the machine's clock, so that the stand-in's can be moved on."""
    made = post.create(api.world, {"url": url, "enabled_events": ["*"]})
    api.world.things[made["id"]]["_secret"] = secret
    api.post.set_habits({"wall_clock": True})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--now", type=int, help="seconds since 1970: the clock stands there until it is moved")
    parser.add_argument("--seed", type=int, default=0, help="of ids and of the post's chances")
    parser.add_argument("--endpoint", help="where events are sent to from the start")
    parser.add_argument("--secret", default="whsec_standin0", help="what those are signed with")
    return parser.parse_args()


if __name__ == "__main__":
    uvloop.run(_run(_options()))  # it sends small answers at once; asyncio would wait 40 ms for each acknowledgement
