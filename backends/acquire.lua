-- A slot, or a place in the line. Repeatable: a request that holds a slot gets the same one again.
-- KEYS[last]: the request's tombstone. ARGV[5..]: request, class, account, estimate, returned, arrival ms (0: now), depth limit,
-- ms it may still wait, mean ms that a call holds a slot (0: not known), then for each replica, best first: name, cap, calls that
-- this gateway itself has running there. `returned` above that of the slot it holds: the call gives it back and waits again.
local TOMBSTONE = KEYS[#KEYS]
local request, depth_limit, may_wait, mean = ARGV[5], tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local call = { gateway = GATEWAY, class = ARGV[6], account = ARGV[7], estimate = tonumber(ARGV[8]), returned = tonumber(ARGV[9]),
  arrival = tonumber(ARGV[10]), replicas = {}, at_head = false }

local function held(slot)
  if slot.arrival > 0 then redis.call('ZREM', INDEX, entry('u', slot.since, request)) end
  return { 'held', slot.replica }
end

if redis.call('EXISTS', TOMBSTONE) == 1 then return { 'gone' } end
if not alive(GATEWAY) then return { 'lease' } end
local slot = slot_of(request)
if slot and slot.returned >= call.returned then return held(slot) end
if slot then
  free(request, slot, 0)
  if call.arrival == 0 then call.arrival = slot.since end
  call.at_head = true
end

for i = 14, #ARGV, 3 do
  local name, cap, own = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local in_use = tonumber(redis.call('HGET', N, name) or '0')
  if in_use < own then redis.call('HSET', N, name, own) end -- as in try.lua
  redis.call('HSET', CAPS, name, string.format('%d %d', cap, now))
  call.replicas[#call.replicas + 1] = name
end

local known = waiter_of(request)
if known then
  known.gateway, known.replicas = GATEWAY, call.replicas
  call = known
  write_waiter(request, call)
elseif call.at_head then
  stand_in_line(request, call)
end
serve() -- those ahead first: what is free after this, nobody ahead can use
slot = slot_of(request)
if slot then return held(slot) end

local pool = pool_now()
if not known and not call.at_head then
  local kept = 0
  for class = 0, tonumber(call.class) - 1 do kept = kept + rule_of(class).reserved end
  local replica = replica_for(call, pool, math.min(kept, pool.slots - 1))
  if replica then
    take(request, replica, call)
    charge_flow(call, call.estimate, now)
    return { 'held', replica }
  end
  local depth = depth_of(call.class)
  if depth >= depth_limit and waits_of(call) >= portion(call, depth_limit) then return { 'full', depth } end
  if call.arrival == 0 then call.arrival = now end
  stand_in_line(request, call)
end

-- How many are ahead: all of the classes above, and of its own class what fair turns put before it.
local ahead, class = 0, tonumber(call.class)
for above = 0, class - 1 do ahead = ahead + depth_of(above) end
local depth, heads = depth_of(class), 'h' .. call.class
if call.at_head then
  ahead = ahead + redis.call('ZLEXCOUNT', INDEX, '[' .. heads .. ' ', '(' .. entry(heads, call.arrival, request))
else
  local flow = flow_of(call)
  local own = redis.call('ZLEXCOUNT', INDEX, '[f' .. flow .. ' ', '(' .. entry('f' .. flow, call.arrival, request))
  local base = class * CLASS_STEP
  local turns = redis.call('ZCOUNT', FLOWS, base, '(' .. base + CLASS_STEP)
  local sooner = redis.call('ZCOUNT', FLOWS, base, '(' .. redis.call('ZSCORE', FLOWS, flow))
  ahead = ahead + math.min(depth - 1, count(heads) + own * turns + sooner)
end
local expected = math.ceil((ahead + 1) * mean / math.max(1, pool.slots))
if not known and not call.at_head and ahead >= pool.slots and expected > may_wait then
  leave_line(request, call)
  return { 'slow', depth - 1, expected }
end
recall()
return { 'waits', string.format('%d', call.arrival), ahead + 1, expected }
