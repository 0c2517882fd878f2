-- Makes the pool true again: what the calling gateway runs is put back, what it does not know goes, what dead gateways left goes,
-- and the counts are counted anew. ARGV[4..]: how many it runs, then request and replica of each, then its waiting requests.
-- Returns slots and waiters removed.
local GRACE = 2000 -- ms; younger ones may have been granted after this call's lists were written down
local running = tonumber(ARGV[4])
local known = {}

for i = 5, 4 + 2 * running, 2 do
  known[ARGV[i]] = true
  if redis.call('HEXISTS', SLOTS, ARGV[i]) == 0 then take(ARGV[i], ARGV[i + 1], GATEWAY) end
end
for i = 5 + 2 * running, #ARGV do known[ARGV[i]] = true end

local function is_stray(request, gateway, since)
  return not alive(gateway) or (gateway == GATEWAY and not known[request] and since + GRACE < now)
end

local removed, counts = { 0, 0 }, {}
local slots = redis.call('HGETALL', SLOTS)
for i = 1, #slots, 2 do
  local replica, gateway, since = string.match(slots[i + 1], '^(%S+) (%S+) (%d+)$')
  if is_stray(slots[i], gateway, tonumber(since)) then
    redis.call('HDEL', SLOTS, slots[i])
    removed[1] = removed[1] + 1
  else
    counts[replica] = (counts[replica] or 0) + 1
  end
end
redis.call('DEL', N)
for replica, count in pairs(counts) do redis.call('HSET', N, replica, count) end

local waiting = redis.call('HGETALL', WAITING)
for i = 1, #waiting, 2 do
  local gateway = string.match(waiting[i + 1], '^(%S+)')
  if is_stray(waiting[i], gateway, tonumber(redis.call('ZSCORE', WAIT, waiting[i]) or '0')) then
    forget(waiting[i])
    removed[2] = removed[2] + 1
  end
end

redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', string.format('%d', now))
serve()
return removed
