-- May this call run now? All or nothing: a refusal changes nothing, an admission takes everything and leaves the hold.
-- KEYS epoch, leases, holds of the gateway, tombstone, account, key
-- ARGV 1 nonce, 2 gateway, 3 request id, 4 its ms, 5 its day, 6 snapshot version, 7 fare, 8 quota, 9 key quota,
--      10 rpm, 11 burst, 12 key rpm, 13 key burst, 14 concurrency, 15 packed hold, 16 clock offset ms, and of an account with
--      packs 17 their fares, used or not, 18 its cap of them a month, 19 the month of the day
-- A limit of -1 is none.
local nonce, day, fare = ARGV[1], tonumber(ARGV[5]), tonumber(ARGV[7])
local quota, key_quota = tonumber(ARGV[8]), tonumber(ARGV[9])
local t = redis.call('TIME')
local now_us = t[1] * 1000000 + t[2]
local now = math.floor(now_us / 1000)

local epoch = redis.call('HMGET', KEYS[1], 'nonce', 'ready')
if epoch[1] ~= nonce then return {'epoch'} end
if now < tonumber(epoch[2]) then return {'opening', tonumber(epoch[2]) - now} end
local lease = redis.call('ZSCORE', KEYS[2], ARGV[2])
if not lease or tonumber(lease) <= now then return {'lease'} end

local u = 'u' .. ARGV[5]
local account = redis.call('HMGET', KEYS[5], 'n', 'v', 'seeded', u, 'open', 'tat')
local key = redis.call('HMGET', KEYS[6], 'n', 'seeded', u, 'tat')
local used, key_used = tonumber(account[4] or 0), tonumber(key[3] or 0)
local held = redis.call('HGET', KEYS[3], ARGV[3])
if held then
  local is_of_pack = string.find(held, ',%d+%]$')
  return {'admitted', used, key_used, is_of_pack and tonumber(redis.call('HGET', KEYS[5], 'b') or 0) or nil}
end
if redis.call('EXISTS', KEYS[4]) == 1 then return {'settled'} end
if math.abs(tonumber(ARGV[4]) - now - tonumber(ARGV[16])) > 60000 then return {'skew'} end

-- A day without a counter is 0 only when it is younger than the day the hash was seeded on; else it is unknown.
local function knows(n, seeded, count)
  return n == nonce and (count or (seeded and day > tonumber(seeded))) and true or false
end
local key_warm = knows(key[1], key[2], key[3])
if not knows(account[1], account[3], account[4]) or (key_quota >= 0 and not key_warm) then return {'cold'} end
local version = tonumber(ARGV[6])
if tonumber(account[2] or 0) > version then return {'stale'} end

-- GCRA: `tat` is when the bucket would be full again. Returns the next tat, or nil and the ms until a call passes.
local function rate(tat, rpm, burst)
  if rpm < 0 then return false end
  local interval = 60000000 / rpm
  local next_tat = math.max(now_us, tonumber(tat or 0)) + math.floor(interval)
  local early = next_tat - math.floor(interval * burst) - now_us
  if early > 0 then return nil, math.ceil(early / 1000) end
  return next_tat
end
local tat, wait = rate(account[6], tonumber(ARGV[10]), tonumber(ARGV[11]))
if tat == nil then return {'rate', 'account', wait} end
local key_tat, key_wait = rate(key[1] == nonce and key[4], tonumber(ARGV[12]), tonumber(ARGV[13]))
if key_tat == nil then return {'rate', 'key', key_wait} end
local open = tonumber(account[5] or 0)
local concurrency = tonumber(ARGV[14])
if concurrency >= 0 and open + 1 > concurrency then return {'concurrency', open} end
-- Beyond the quota the account's packs pay for the whole call, or do not.
local pack, month, packed = nil, nil, ARGV[15]
if quota >= 0 and used + fare > quota then
  if not ARGV[17] then return {'quota', 'account', used} end
  month = 'c' .. ARGV[19]
  pack = redis.call('HMGET', KEYS[5], 'b', month)
  if not (pack[1] and pack[2]) then return {'cold'} end
  local cap = tonumber(ARGV[18])
  if pack[1] + fare > tonumber(ARGV[17]) or (cap >= 0 and pack[2] + fare > cap) then
    return {'quota', 'account', used, tonumber(pack[1]), tonumber(pack[2])}
  end
  packed = string.sub(packed, 1, -2) .. ',' .. ARGV[19] .. ']'
end
if key_quota >= 0 and key_used + fare > key_quota then return {'quota', 'key', key_used} end

-- A day's first call drops the days before yesterday and lets an unused hash go after three days (then it is cold).
local function first_of_day(hash)
  for _, field in ipairs(redis.call('HKEYS', hash)) do
    local old = string.match(field, '^[ug](%d+)$')
    if old and tonumber(old) < day - 1 then redis.call('HDEL', hash, field) end
  end
  redis.call('EXPIRE', hash, 259200)
end
redis.call('HSET', KEYS[3], ARGV[3], packed)
if not account[4] then first_of_day(KEYS[5]) end
if pack then
  redis.call('HSET', KEYS[5], 'b', pack[1] + fare, month, pack[2] + fare)
else
  used = used + fare
end
redis.call('HSET', KEYS[5], u, used, 'open', open + 1, 'v', version, 'tat', tat or account[6] or 0)
if key_warm then
  -- Kept even without a cap: one that is set later today finds the true count.
  if not key[3] then first_of_day(KEYS[6]) end
  redis.call('HSET', KEYS[6], u, key_used + fare)
end
if key_tat then
  if key[1] ~= nonce then redis.call('DEL', KEYS[6]) end
  redis.call('HSET', KEYS[6], 'n', nonce, 'tat', key_tat)
  if key[1] ~= nonce then redis.call('EXPIRE', KEYS[6], 259200) end
end
return {'admitted', used, key_used + fare, pack and pack[1] + fare or nil}
