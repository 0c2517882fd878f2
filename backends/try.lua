-- A slot now or not at all: for the call that comes while nobody waits. Repeatable: who holds a slot gets the same one again.
-- KEYS[7]: the request's tombstone. ARGV[3..]: request, class, account, slots that are kept for classes above, then for each
-- replica, best first: name, cap, calls that this gateway itself has running there.
local request, kept = ARGV[3], tonumber(ARGV[6])
if redis.call('EXISTS', KEYS[7]) == 1 then return { 'gone' } end
if not alive(GATEWAY) then return { 'lease' } end

local names = {}
for i = 7, #ARGV, 3 do names[#names + 1] = ARGV[i] end
local counts = #names > 0 and redis.call('HMGET', N, unpack(names)) or {}
local free, slots, chosen = 0, 0, nil
for i, name in ipairs(names) do
  local cap, own = tonumber(ARGV[5 + 3 * i]), tonumber(ARGV[6 + 3 * i])
  local in_use = tonumber(counts[i] or '0')
  -- What this gateway has running counts even when the server has forgotten it (a flush must not overload an engine);
  -- the next sweep puts the slots themselves back and counts anew.
  if in_use < own then
    redis.call('HSET', N, name, own)
    in_use = own
  end
  slots = slots + cap
  if in_use < cap then
    free = free + cap - in_use
    chosen = chosen or name
  end
end
local call = { gateway = GATEWAY, class = ARGV[4], account = ARGV[5], estimate = 0, returned = 0, arrival = 0 }
local may = chosen and free > math.min(kept, slots - 1) and redis.call('HLEN', WAITING) == 0
if may and take(request, chosen, call) then return { 'held', chosen } end
local slot = slot_of(request)
return slot and { 'held', slot.replica } or { 'busy' }
