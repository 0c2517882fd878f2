-- Makes the pool true again: what the calling gateway runs is put back, slots that it does not know or that dead gateways left go,
-- a grant that nobody claimed goes back to the head of its class, and the counts are counted anew.
-- ARGV[5..]: where the look through the line goes on (0: at its begin), then of each call that it runs: request, and
-- "replica class account estimate returned". Returns slots and waiters removed, where the next look goes on, and those waiters of
-- the calling gateway that the look met and that are old enough to be known to it.
local GRACE = 2000  -- ms; younger ones may have been granted after this call's list was written down
local CLAIM = 2000  -- ms in which a grant must be claimed
local LOOK = 1000   -- waiters looked at in one sweep
local known = {}
for i = 6, #ARGV, 2 do
  known[ARGV[i]] = true
  if redis.call('HEXISTS', SLOTS, ARGV[i]) == 0 then
    local replica, class, account, estimate, returned = string.match(ARGV[i + 1], '^(%S+) (%d) (%S+) (%d+) (%d+)$')
    local call = waiter_of(ARGV[i])
    if call then leave_line(ARGV[i], call) end
    take(ARGV[i], replica, { gateway = GATEWAY, class = class, account = account, estimate = tonumber(estimate),
      returned = tonumber(returned), arrival = 0 })
  end
end

local ours = {}
local unclaimed = redis.call('ZRANGEBYLEX', INDEX, '[u ', '[' .. entry('u', now - CLAIM - 1, '~'))
for _, member in ipairs(unclaimed) do
  local request = string.match(member, '(%S+)$')
  local slot = slot_of(request)
  if alive(slot.gateway) then
    free(request, slot, 0)
    slot.at_head, slot.replicas = true, { slot.replica }
    stand_in_line(request, slot)
    if slot.gateway == GATEWAY then ours[#ours + 1] = request end
  end
end

local removed, counts = { 0, 0 }, {}
for _, request in ipairs(redis.call('HKEYS', SLOTS)) do
  local slot = slot_of(request)
  local is_ours_unknown = slot.gateway == GATEWAY and not known[request] and slot.since + GRACE < now
  if is_ours_unknown or not alive(slot.gateway) then
    free(request, slot)
    removed[1] = removed[1] + 1
  else
    counts[slot.replica] = (counts[slot.replica] or 0) + 1
  end
end
redis.call('DEL', N)
for replica, in_use in pairs(counts) do redis.call('HSET', N, replica, in_use) end

local found = redis.call('HSCAN', WAITING, ARGV[5], 'COUNT', LOOK)
for i = 1, #found[2], 2 do
  local request = found[2][i]
  local call = waiter_of(request)
  if call and not alive(call.gateway) then
    leave_line(request, call)
    removed[2] = removed[2] + 1
  elseif call and call.gateway == GATEWAY and call.arrival + GRACE < now then
    ours[#ours + 1] = request
  end
end

local caps = redis.call('HGETALL', CAPS)
for i = 1, #caps, 2 do
  if tonumber(string.match(caps[i + 1], '(%d+)$')) + CAPS_TTL < now then redis.call('HDEL', CAPS, caps[i]) end
end
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', string.format('%d', now))
redis.call('ZREMRANGEBYSCORE', WORK, '-inf', string.format('%.17g', now / HALF_LIFE)) -- less than one token is left of it
serve()
return { removed[1], removed[2], found[1], ours }
