#!lua flags=allow-oom
-- The call is done: its answer is kept under its idempotency key, and the account's oldest make room for it.
-- KEYS entry, index of the account's answers
-- ARGV 1 request id, 2 fingerprint of the body, 3 ms to keep it, 4 the entry's name, 5 answers of an account at most, 6 their
--      bytes at most, 7 the sealed answer (empty: it is not kept, only that the call is done)
-- Returns the names of the entries that have to go.
local owner = redis.call('HGET', KEYS[1], 'r')
if owner and owner ~= ARGV[1] then return {} end -- this gateway was taken for dead, and another call has run
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('HSET', KEYS[1], 'r', ARGV[1], 'b', ARGV[2], 's', 'done')
if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'a', ARGV[7]) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])

redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[4] .. ':' .. #ARGV[7])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
local kept = redis.call('ZRANGE', KEYS[2], 0, -1)
local count, bytes, gone = #kept, 0, {}
for _, member in ipairs(kept) do bytes = bytes + tonumber(string.match(member, '%d+$')) end
for _, member in ipairs(kept) do
  if count <= tonumber(ARGV[5]) and bytes <= tonumber(ARGV[6]) then break end
  count, bytes = count - 1, bytes - tonumber(string.match(member, '%d+$'))
  redis.call('ZREM', KEYS[2], member)
  gone[#gone + 1] = string.match(member, '^[^:]+')
end
return gone
