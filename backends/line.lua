-- The line of a pool: who waits, in which order accounts have their turn, and what leaving it or a slot changes.
-- KEYS[7..]: flows, caps, credit, then one grants list for each gateway named in ARGV[3], then the script's own.
-- ARGV[3..]: the gateways known to live (space between), the classes' rules, then the script's own.
local FLOWS, CAPS, CREDIT = KEYS[7], KEYS[8], KEYS[9]
local LOWEST = 4                -- classes are 0 (first) to 4
local CLASS_STEP = 100000000    -- a flow's score is class x this + level of its work; levels stay below it for 190 years
local GRANTS_TTL = 10000        -- ms; a wake-up list that nobody pops is only litter

local lists
local function list_of(gateway)
  if not lists then
    lists = {}
    local place = 10
    for peer in string.gmatch(ARGV[3], '%S+') do
      lists[peer] = KEYS[place]
      place = place + 1
    end
  end
  return lists[gateway]
end

local function tell(gateway, words)
  -- What is told is already state. A gateway whose list we were not given finds it with its next poll.
  local list = list_of(gateway)
  if list then
    redis.call('RPUSH', list, words)
    redis.call('PEXPIRE', list, GRANTS_TTL)
  end
end

-- A waiter is "gateway class account arrival estimate returned at-head replica replica ...", in the order it prefers them.
local function waiter_of(request)
  local record = redis.call('HGET', WAITING, request)
  if not record then return end
  local words = {}
  for word in string.gmatch(record, '%S+') do words[#words + 1] = word end
  return { gateway = words[1], class = words[2], account = words[3], arrival = tonumber(words[4]), estimate = tonumber(words[5]),
    returned = tonumber(words[6]), at_head = words[7] == '1', replicas = { unpack(words, 8) } }
end

local function write_waiter(request, call)
  redis.call('HSET', WAITING, request, string.format('%s %s %s %d %d %d %d %s', call.gateway, call.class, call.account,
    call.arrival, call.estimate, call.returned, call.at_head and 1 or 0, table.concat(call.replicas, ' ')))
end

local function flow_of(call) return call.class .. ' ' .. call.account end
local function flow_score(class, level) return string.format('%.17g', class * CLASS_STEP + (level or 0)) end
local function count(kind) return redis.call('ZLEXCOUNT', INDEX, '[' .. kind .. ' ', '(' .. kind .. '!') end
local function depth_of(class) return count('a' .. class) end

local function charge_flow(call, amount, at)
  if amount == 0 then return end
  local level = charge(flow_of(call), amount, at)
  redis.call('ZADD', FLOWS, 'XX', flow_score(call.class, level), flow_of(call))
end

-- An account that comes into the line starts no lower than the least of those that are in it: idle time is not banked. Standing
-- in line costs one token, so that of equals the one who came first goes first.
local function join_flows(call)
  local flow, floor = flow_of(call), call.class * CLASS_STEP
  if redis.call('ZSCORE', FLOWS, flow) then return end
  local least = redis.call('ZRANGEBYSCORE', FLOWS, floor, '(' .. floor + CLASS_STEP, 'WITHSCORES', 'LIMIT', 0, 1)
  local level = tonumber(redis.call('ZSCORE', WORK, flow) or '0')
  if least[2] and tonumber(least[2]) - floor > level then
    redis.call('ZADD', WORK, string.format('%.17g', tonumber(least[2]) - floor), flow)
  end
  redis.call('ZADD', FLOWS, flow_score(call.class, charge(flow, 1, now)), flow)
end

local function stand_in_line(request, call)
  write_waiter(request, call)
  redis.call('ZADD', INDEX, 0, entry('a' .. call.class, call.arrival, request))
  if call.at_head then
    redis.call('ZADD', INDEX, 0, entry('h' .. call.class, call.arrival, request))
  else
    redis.call('ZADD', INDEX, 0, entry('f' .. flow_of(call), call.arrival, request))
    join_flows(call)
  end
end

local function heads_of(flow, many)
  return redis.call('ZRANGEBYLEX', INDEX, '[f' .. flow .. ' ', '(f' .. flow .. '!', 'LIMIT', 0, many)
end

local function leave_line(request, call)
  redis.call('HDEL', WAITING, request)
  redis.call('ZREM', INDEX, entry('a' .. call.class, call.arrival, request))
  if call.at_head then
    redis.call('ZREM', INDEX, entry('h' .. call.class, call.arrival, request))
  else
    redis.call('ZREM', INDEX, entry('f' .. flow_of(call), call.arrival, request))
    if #heads_of(flow_of(call), 1) == 0 then redis.call('ZREM', FLOWS, flow_of(call)) end
  end
end

-- Takes the slot away. `worked` is the work that was done (nil: the estimate stands).
local function free(request, slot, worked)
  vacate(request, slot)
  if slot.arrival > 0 then redis.call('ZREM', INDEX, entry('u', slot.since, request)) end
  if slot.asked > 0 then redis.call('ZREM', INDEX, entry('o', slot.asked, request)) end
  if worked then charge_flow(slot, worked - slot.estimate, slot.since) end
end

