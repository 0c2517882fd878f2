#!lua flags=allow-oom
-- Puts an open hold back after a new epoch, and counts it where the counters were rebuilt without it.
-- KEYS epoch, leases, holds of the gateway, tombstone, account, key; ARGV nonce, gateway, request id, packed hold
local nonce = ARGV[1]
if redis.call('HGET', KEYS[1], 'nonce') ~= nonce then return 'epoch' end
if not redis.call('ZSCORE', KEYS[2], ARGV[2]) then return 'lease' end -- nobody would sweep it
if redis.call('EXISTS', KEYS[4]) == 1 then return 'settled' end
local before = redis.call('HGET', KEYS[3], ARGV[3])
if before and cjson.decode(before)[9] == nonce then return 'held' end
redis.call('HSET', KEYS[3], ARGV[3], ARGV[4])

local hold = cjson.decode(ARGV[4])
local day, fare, month = hold[3], hold[4], hold[10]
local function count(hash)
  local seen = redis.call('HMGET', hash, 'n', 'seeded', 'u' .. day)
  if seen[1] ~= nonce then return false end
  -- A day that is unknown stays so: its seed will find this hold.
  if seen[3] or (seen[2] and day > tonumber(seen[2])) then redis.call('HINCRBY', hash, 'u' .. day, fare) end
  return true
end
local function count_of_pack(hash)
  if redis.call('HGET', hash, 'n') ~= nonce then return false end
  for _, field in ipairs({'b', 'c' .. month}) do
    if redis.call('HEXISTS', hash, field) == 1 then redis.call('HINCRBY', hash, field, fare) end
  end
  return true
end
local counts = month and count_of_pack or count
if counts(KEYS[5]) then redis.call('HINCRBY', KEYS[5], 'open', 1) end
count(KEYS[6])
return 'asserted'
