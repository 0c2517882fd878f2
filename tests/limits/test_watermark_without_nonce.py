"""Two flushes in a row: a watermark of no epoch let go of an end that only the first memory had heard of."""

from gateway.limits.hold import Ask
from gateway.limits.outbox import Ending, Outbox
from gateway.limits.policy import Numbers
from gateway.limits.shard import Shard
from gateway.valkey import Valkey


async def test_a_watermark_that_was_written_while_no_epoch_was_open_lets_nothing_go() -> None:
    shard = Shard(0, "a")
    outbox = Outbox(Valkey("redis://127.0.0.1:1"), [shard], "a")
    ask = Ask("01936f00-0000-7000-8000-000000000000", "account", "key", 1, 1, Numbers(), "m", "chat", stream=False)
    ending = Ending(ask, shard, "posted", "answered", b"{}")
    shard.kept[ask.request_id] = ending
    ending.acked = ("", (5, 0))
    outbox.release(shard, b" 9-0")
    assert ask.request_id in shard.kept
    ending.acked = ("n", (5, 0))
    outbox.release(shard, b"n 9-0")
    assert ask.request_id not in shard.kept
