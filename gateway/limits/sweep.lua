-- Ends one hold of a gateway whose lease ran out (expired, counted as void), and forgets a gateway without holds.
-- KEYS epoch, leases, holds of the gateway, tombstone, account, key, events
-- ARGV run id, gateway, request id (empty: none known), event, grace ms, tombstone ms
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local epoch = redis.call('HMGET', KEYS[1], 'run', 'since')
if epoch[1] ~= ARGV[1] then return 'epoch' end
-- Leases ran out while the server was away: its gateways first get a lease's time to come back.
if now < tonumber(epoch[2]) + tonumber(ARGV[5]) then return 'young' end
local lease = redis.call('ZSCORE', KEYS[2], ARGV[2])
if lease and tonumber(lease) > now then return 'alive' end

local swept = 'gone'
local packed = ARGV[3] ~= '' and redis.call('HGET', KEYS[3], ARGV[3])
if packed then
  local _, give_back = close(cjson.decode(packed), 'expired', KEYS[5], KEYS[6], -1)
  redis.call('XADD', KEYS[7], '*', 'id', ARGV[3], 'v', 'expired', 'r', 'gateway_died', 'e', ARGV[4])
  redis.call('HDEL', KEYS[3], ARGV[3])
  redis.call('SET', KEYS[4], '1', 'PX', ARGV[6]) -- a frozen gateway that wakes must not put it back
  give_back()
  swept = 'swept'
end
if redis.call('EXISTS', KEYS[3]) == 0 then redis.call('ZREM', KEYS[2], ARGV[2]) end
return swept
