#!lua flags=allow-oom
-- The gateway lives for another ttl; holds of a gateway whose lease ran out are swept.
-- KEYS epoch, leases, wm; ARGV gateway, ttl ms. Returns nonce (empty: no epoch), now, watermark.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[2]), ARGV[1])
return {redis.call('HGET', KEYS[1], 'nonce') or '', now, redis.call('GET', KEYS[3]) or ''}
