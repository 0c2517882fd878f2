-- May this call run under its idempotency key? Takes the key for it, or says what became of the call that has it.
-- KEYS epoch, leases, entry, holds of the owner's gateway, tombstone of the owner (the last two: see `orphan`)
-- ARGV 1 request id, 2 gateway, 3 fingerprint of the body, 4 ms that a running call keeps it, 5 grace ms, 6 tombstone ms,
--      7 the owner that KEYS 4 and 5 belong to (empty: none is known)
-- The gateway leases the shard in the same write, before this.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function take()
  redis.call('HSET', KEYS[3], 'r', ARGV[1], 'g', ARGV[2], 'b', ARGV[3], 's', 'running')
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
  return {'claimed'}
end

local entry = redis.call('HMGET', KEYS[3], 'r', 'g', 'b', 's')
local owner = entry[1]
if not owner or owner == ARGV[1] then return take() end
if entry[3] ~= ARGV[3] then return {'other'} end
if entry[4] == 'done' then return {'done', owner} end

-- It runs, as long as its gateway lives. Leases also run out while the server is away: then its gateways first get a lease's
-- time to come back.
local lease = redis.call('ZSCORE', KEYS[2], entry[2])
local since = redis.call('HGET', KEYS[1], 'since')
if (lease and tonumber(lease) > now) or not since or now < tonumber(since) + tonumber(ARGV[5]) then return {'running'} end
if ARGV[7] ~= owner then return {'orphan', owner, entry[2]} end -- come again, and name what it may have left
if redis.call('HEXISTS', KEYS[4], owner) == 1 then return {'running'} end -- its fare is still held: the sweep ends it
redis.call('SET', KEYS[5], '1', 'PX', ARGV[6]) -- a frozen gateway that wakes must not be admitted with it any more
return take()
