-- Who is next: class by rank, but a class below its floor has its turn; then the account with least recent work; of near-equals
-- the one that waited long, then the one whose prefix is warm, then the one that came first.
local SCAN = 32             -- waiters of a class looked at in one go: those at the head may be waiting for other replicas
local DEEP = 8              -- of one account at most so many
local NEAR = 8              -- accounts compared with the least
local NEAR_SHARE = 1.1      -- near-equal: at most a tenth more recent work,
local NEAR_TOKENS = 256     -- or so many tokens more
local AGED = 10000          -- ms in line, from which a waiter goes before the warm ones among its near-equals
local CAPS_TTL = 5000       -- ms; a replica that no waiter has named for so long is not counted on
local RECALL_AFTER = 200    -- ms a waiter stands before a lower class is asked for a slot
local RECALL_LASTS = 1000   -- ms within which an asked gateway is believed to be about to answer

-- The rules come as "floor reserved share" of each class: floor and share in percent of the pool, reserved in slots.
local rules
local function rule_of(class)
  if not rules then
    rules = {}
    for floor, reserved, share in string.gmatch(ARGV[4], '(%d+) (%d+) (%d+)') do
      rules[#rules + 1] = { floor = tonumber(floor), reserved = tonumber(reserved), share = tonumber(share) }
    end
  end
  return rules[class + 1]
end

-- What is free: by replica, and in all; and how many slots there are.
local function pool_now()
  local caps, counts = redis.call('HGETALL', CAPS), {}
  local found = redis.call('HGETALL', N)
  for i = 1, #found, 2 do counts[found[i]] = tonumber(found[i + 1]) end
  local pool = { room = {}, free = 0, slots = 0 }
  for i = 1, #caps, 2 do
    local cap, at = string.match(caps[i + 1], '^(%d+) (%d+)$')
    if tonumber(at) + CAPS_TTL >= now then
      pool.room[caps[i]] = math.max(0, tonumber(cap) - (counts[caps[i]] or 0))
      pool.free, pool.slots = pool.free + pool.room[caps[i]], pool.slots + tonumber(cap)
    end
  end
  return pool
end

local function running(class) return count('x' .. class) + count('i' .. class) end
local function running_from(class)
  local sum = 0
  for lower = class, LOWEST do sum = sum + running(lower) end
  return sum
end

-- The replica that the waiter may have now: its first with room, when more is free in the pool than is kept for classes above.
local function replica_for(call, pool, kept)
  if pool.free <= kept then return end
  for _, name in ipairs(call.replicas) do
    if (pool.room[name] or 0) > 0 then return name end
  end
end

local function is_before(call, replica, other, other_replica)
  local aged, other_aged = call.arrival + AGED <= now, other.arrival + AGED <= now
  if aged ~= other_aged then return aged end
  if not aged then
    local warm, other_warm = replica == call.replicas[1], other_replica == other.replicas[1]
    if warm ~= other_warm then return warm end
  end
  return call.arrival < other.arrival
end

-- The waiter, and the replica that it may have. Those of dead gateways are dropped on the way.
local function usable(request, pool, kept)
  local call = waiter_of(request)
  if alive(call.gateway) then return call, replica_for(call, pool, kept) end
  leave_line(request, call)
  pool.depths[tonumber(call.class)] = pool.depths[tonumber(call.class)] - 1
end

-- The first of these index entries that can be served, and how many more may be looked at.
local function first_usable(entries, pool, kept, looks)
  for _, member in ipairs(entries) do
    if looks == 0 then break end
    looks = looks - 1
    local request = string.match(member, '(%S+)$')
    local call, replica = usable(request, pool, kept)
    if replica then return looks, request, call, replica end
  end
  return looks
end

local function first_of_class(class, pool, kept)
  local heads = redis.call('ZRANGEBYLEX', INDEX, '[h' .. class .. ' ', '(h' .. class .. '!', 'LIMIT', 0, SCAN)
  local looks, head, head_call, head_replica = first_usable(heads, pool, kept, SCAN)
  if head then return head, head_call, head_replica end
  local base = class * CLASS_STEP
  local flows = redis.call('ZRANGEBYSCORE', FLOWS, base, '(' .. base + CLASS_STEP, 'WITHSCORES', 'LIMIT', 0, SCAN)
  local request, call, replica, limit
  for i = 1, #flows, 2 do
    local work = 2 ^ (tonumber(flows[i + 1]) - base - now / HALF_LIFE)
    if looks == 0 or (limit and (work > limit or i > 2 * NEAR)) then break end
    local other, other_call, other_replica
    looks, other, other_call, other_replica = first_usable(heads_of(flows[i], DEEP), pool, kept, looks)
    if other then
      limit = limit or math.max(work * NEAR_SHARE, work + NEAR_TOKENS)
      if not request or is_before(other_call, other_replica, call, replica) then
        request, call, replica = other, other_call, other_replica
      end
    end
  end
  return request, call, replica
end

-- A class that waits below its floor earns its share of each slot that goes elsewhere; a whole one earned is its next turn.
local function count_turn(class, was_due, pool)
  local credits = pool.credits
  if was_due then credits[class] = credits[class] - 100 end
  for other = 0, LOWEST do
    local floor = rule_of(other).floor
    if other ~= class and floor > 0 and pool.depths[other] > 0 and running(other) * 100 < floor * pool.slots then
      credits[other] = math.min(100, credits[other] + floor)
    end
  end
  for other = 0, LOWEST do
    if credits[other] > 0 or was_due then redis.call('HSET', CREDIT, other, credits[other]) end
  end
end

local function next_waiter(pool)
  local kept, above, depths = 0, 0, pool.depths
  for class = 0, LOWEST do -- floors first: they go before what is kept for classes above
    if depths[class] > 0 and pool.credits[class] >= 100 then
      local request, call, replica = first_of_class(class, pool, 0)
      if request then return request, call, replica, true end
    end
  end
  for class = 0, LOWEST do
    local rule = rule_of(class)
    -- While somebody above waits, a class and all below it run no more than its share together.
    local most = math.max(1, math.floor(rule.share * pool.slots / 100))
    if above > 0 and rule.share < 100 and running_from(class) >= most then return end
    -- A class of which nobody can be served now is not looked through: while a slot is kept free, each question would do so.
    if depths[class] > 0 and pool.free > math.min(kept, pool.slots - 1) then
      local request, call, replica = first_of_class(class, pool, math.min(kept, pool.slots - 1))
      if request then return request, call, replica, false end
    end
    above, kept = above + depths[class], kept + rule.reserved
  end
end

-- Free capacity goes to those who wait, in their order; after every script no waiter at the head could be served.
local function serve()
  if redis.call('HLEN', WAITING) == 0 then return end
  local pool = pool_now()
  if pool.free == 0 then return end
  pool.depths, pool.credits = {}, {}
  local known = redis.call('HMGET', CREDIT, 0, 1, 2, 3, 4)
  for class = 0, LOWEST do
    pool.depths[class], pool.credits[class] = depth_of(class), tonumber(known[class + 1] or '0')
  end
  while pool.free > 0 do
    local request, call, replica, was_due = next_waiter(pool)
    if not request then return end
    leave_line(request, call)
    take(request, replica, call)
    charge_flow(call, call.estimate, now)
    redis.call('ZADD', INDEX, 0, entry('u', now, request))
    tell(call.gateway, 'grant ' .. request .. ' ' .. replica)
    local class = tonumber(call.class)
    pool.depths[class], pool.room[replica], pool.free = pool.depths[class] - 1, pool.room[replica] - 1, pool.free - 1
    count_turn(class, was_due, pool)
  end
end

-- What one account may have of a line that is full: none keeps the others out of it by filling it.
local function waits_of(call)
  local flow = flow_of(call)
  return redis.call('ZLEXCOUNT', INDEX, '[f' .. flow .. ' ', '(f' .. flow .. '!')
end

local function portion(call, depth_limit)
  local base = call.class * CLASS_STEP
  local flows = redis.call('ZCOUNT', FLOWS, base, '(' .. base + CLASS_STEP)
  if not redis.call('ZSCORE', FLOWS, flow_of(call)) then flows = flows + 1 end
  return math.floor(depth_limit / flows)
end

-- The newest call of the lowest class below `class` that may still be asked, on a replica that the waiter can use.
local function newest_below(class, call)
  local wanted = {}
  for _, name in ipairs(call.replicas) do wanted[name] = true end
  for lower = LOWEST, class + 1, -1 do
    local found = redis.call('ZREVRANGEBYLEX', INDEX, '(x' .. lower .. '!', '[x' .. lower .. ' ', 'LIMIT', 0, NEAR)
    for _, member in ipairs(found) do
      local request = string.match(member, '(%S+)$')
      local slot = slot_of(request)
      if wanted[slot.replica] and list_of(slot.gateway) then return request, slot end
    end
  end
end

local function ask_back(request, slot)
  redis.call('ZREM', INDEX, entry(runs_as(slot), slot.since, request))
  slot.asked = now
  redis.call('ZADD', INDEX, 0, entry(runs_as(slot), slot.since, request), 0, entry('o', now, request))
  redis.call('HSET', SLOTS, request, string.format('%s %s %d %s %s %d %d %d %d', slot.replica, slot.gateway, slot.since, slot.class,
    slot.account, slot.estimate, slot.returned, slot.arrival, slot.asked))
  tell(slot.gateway, 'recall ' .. request)
end

-- Who has stood for a moment, with nothing free, may have the slot of a lower class's call: its gateway is asked, and gives it back
-- if it has put out nothing yet. Each call is asked once for a slot; one question for each waiter.
local function recall()
  local needed, asked = 0, redis.call('ZLEXCOUNT', INDEX, '[' .. entry('o', now - RECALL_LASTS, ''), '(o!')
  for class = 0, LOWEST - 1 do
    local first = '[a' .. class .. ' '
    local stood = entry('a' .. class, now - RECALL_AFTER, '~')
    local many = redis.call('ZLEXCOUNT', INDEX, first, '[' .. stood)
    needed = needed + many
    if many > 0 and asked < needed then
      local oldest = redis.call('ZRANGEBYLEX', INDEX, first, '[' .. stood, 'LIMIT', 0, 1)[1]
      local call = waiter_of(string.match(oldest, '(%S+)$'))
      while asked < needed do
        local request, slot = newest_below(class, call)
        if not request then break end
        ask_back(request, slot)
        asked = asked + 1
      end
    end
  end
end

