-- What every script of a pool begins with (put in front of each by slots.py): the keys, the clock, slots, and the work of accounts.
-- KEYS: slots, n, work, index, waiting, leases, then more (line.lua). ARGV: the present in ms (0: the server's own clock, as always
-- but in tests and simulations), the calling gateway, then more.
local SLOTS, N, WORK, INDEX, WAITING, LEASES = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local now, GATEWAY = tonumber(ARGV[1]), ARGV[2]
local HALF_LIFE = 60000 -- ms in which work that was done counts half
local RETURNS_MAX = 2   -- so often may one call be taken back
local LN2 = math.log(2)

local lives = {}
local function alive(gateway)
  if lives[gateway] == nil then
    local expiry = redis.call('ZSCORE', LEASES, gateway)
    lives[gateway] = expiry and tonumber(expiry) > now or false
  end
  return lives[gateway]
end

-- A slot is "replica gateway since class account estimate returned arrival asked": when it was granted, the work that its account
-- was charged with (0 when nobody waited: then the order needs it only when the call has left), how often the call was taken back
-- before, when it came into the line (0: it never waited), when it was asked back (0: not).
local function slot_of(request)
  local record = redis.call('HGET', SLOTS, request)
  if not record then return end
  local replica, gateway, since, class, account, estimate, returned, arrival, asked =
    string.match(record, '^(%S+) (%S+) (%d+) (%d) (%S+) (%d+) (%d+) (%d+) (%d+)$')
  if not replica then return { replica = string.match(record, '^%S+'), gateway = '', since = 0, class = '0', account = '-',
    estimate = 0, returned = 0, arrival = 0, asked = 0 } end
  return { replica = replica, gateway = gateway, since = tonumber(since), class = class, account = account,
    estimate = tonumber(estimate), returned = tonumber(returned), arrival = tonumber(arrival), asked = tonumber(asked) }
end

-- The index is one sorted set of equal scores, so that ranges of its members can be found and counted by their text:
--   x<class> <since> <request>               runs and may be asked back        a<class> <arrival> <request>             waits
--   i<class> <since> <request>               runs and may not                  f<class> <account> <arrival> <request>   in its account's order
--   u <since> <request>                      granted, not yet claimed          h<class> <arrival> <request>             at the head of its class
--   o <asked> <request>                      asked back, not yet answered
local function entry(kind, ms, request)
  return string.format('%s %014d %s', kind, ms, request)
end

local function runs_as(slot)
  local may_be_asked = slot.asked == 0 and slot.returned < RETURNS_MAX
  return (may_be_asked and 'x' or 'i') .. slot.class
end

-- Work is kept as its level, log2(work x 2^(t / half-life)). Levels of different moments compare as they are, and none overflows.
local function charge(flow, amount, at)
  if amount == 0 then return end
  local level = tonumber(redis.call('ZSCORE', WORK, flow) or nil)
  local added = at / HALF_LIFE + math.log(math.abs(amount)) / LN2
  if amount > 0 then
    local high, low = added, level or -math.huge
    if low > high then high, low = low, high end
    level = high + math.log(1 + 2 ^ (low - high)) / LN2
  elseif level and added < level then
    level = level + math.log(1 - 2 ^ (added - level)) / LN2
  else
    level = nil
  end
  if level then
    redis.call('ZADD', WORK, string.format('%.17g', level), flow)
  else
    redis.call('ZREM', WORK, flow)
  end
  return level
end

-- Gives the slot to `call` (its gateway, class, account, estimate, returned, arrival); false when the request holds one already.
local function take(request, replica, call)
  local slot = { since = now, class = call.class, returned = call.returned, asked = 0 }
  local record = string.format('%s %s %d %s %s %d %d %d 0', replica, call.gateway, now, call.class, call.account, call.estimate,
    call.returned, call.arrival)
  if redis.call('HSETNX', SLOTS, request, record) == 0 then return false end
  redis.call('HINCRBY', N, replica, 1)
  redis.call('ZADD', INDEX, 0, entry(runs_as(slot), now, request))
  return true
end

-- Takes it away again.
local function vacate(request, slot)
  redis.call('HDEL', SLOTS, request)
  redis.call('HINCRBY', N, slot.replica, -1)
  redis.call('ZREM', INDEX, entry(runs_as(slot), slot.since, request))
end

