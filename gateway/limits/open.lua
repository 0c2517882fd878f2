-- Whose memory is this? Opens an epoch when there is none, or when the server is not the one that opened it.
-- Everything else names the nonce it was written under, so that what an older epoch left is not believed.
-- KEYS epoch, wm; ARGV run id, fresh nonce, opening ms. Returns nonce, ms until calls are taken, now, watermark.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local epoch = redis.call('HMGET', KEYS[1], 'run', 'nonce', 'ready')
local nonce, ready = epoch[2], tonumber(epoch[3])
if epoch[1] ~= ARGV[1] then
  nonce, ready = ARGV[2], now + tonumber(ARGV[3])
  redis.call('HSET', KEYS[1], 'run', ARGV[1], 'nonce', nonce, 'since', now, 'ready', ready)
end
return {nonce, math.max(0, ready - now), now, redis.call('GET', KEYS[2]) or ''}
